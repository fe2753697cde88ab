//! The rows of the fault matrix.

use crate::row::{Row, rows};

mod auth;
mod clocks;
mod cluster;
mod common;
mod costs;
mod cut_changes;
mod cuts;
mod descriptors;
mod disk_full;
mod duplicates;
mod flapping;
mod garbage;
mod herd;
mod hostile_bytes;
mod hostile_keys;
mod http2_floods;
mod huge;
mod hung;
mod key_flood;
mod killed;
mod late_redis;
mod lease_crash;
mod little_memory;
mod long_keys;
mod numbers;
mod overload;
mod paused;
mod refunds;
mod refusing;
mod reload;
mod replicas;
mod rolling;
mod scripts;
mod slow;
mod slow_clients;
mod split_brain;
mod tls;
mod windows;
mod zero;

/// Rows that mostly wait, and whose bounds on times are not close: a full run runs them together.
pub const WAITING: [u8; 16] = [1, 3, 7, 8, 9, 10, 13, 17, 19, 21, 22, 23, 24, 25, 26, 45];

/// All rows, in matrix order.
pub fn all() -> Vec<Row> {
    rows! {
        1 Quick, "Redis killed", "kill -9, three nodes":
            killed::fleet_keeps_its_limit_without_redis;
        2 Quick, "hung", "SIGSTOP at 1000 requests/s":
            hung::hung_redis_delays_for_one_timeout;
        3 Quick, "slow", "proxy +T/2, then +2T":
            slow::half_a_timeout_is_exact_and_two_are_degraded;
        4 Quick, "blackhole", "no replies, no new connections":
            hung::black_hole_delays_for_one_timeout;
        5 Quick, "connection reset", "proxy cuts after any byte":
            cuts::no_reply_reaches_another_caller;
        6 Quick, "scripts flushed", "SCRIPT and FUNCTION FLUSH 100/s":
            scripts::lost_scripts_have_no_visible_effect;
        7 Quick, "restart empty", "kill -9, start":
            killed::empty_redis_admits_at_most_one_more_limit;
        8 Quick, "out of memory", "noeviction, maxmemory 1":
            refusing::redis_without_memory_admits_nothing;
        9 Quick, "evicting", "maxmemory-policy allkeys-lru":
            refusing::evicting_redis_causes_a_warning;
        10 Quick, "READONLY", "REPLICAOF live; failover":
            replicas::node_is_degraded_until_the_replica_is_primary;
        11 Quick, "slots move", "three primaries, migration under load":
            cluster::moving_slots_have_no_visible_effect;
        12 Quick, "CROSSSLOT", "limits in several slots":
            cluster::limits_across_slots_cause_no_error;
        13 Quick, "LOADING", "proxy replies -LOADING":
            refusing::loading_redis_gets_no_extra_load;
        14 Quick, "BUSY", "endless EVAL":
            refusing::busy_redis_keeps_its_script;
        15 Quick, "auth", "wrong password; changed while running":
            auth::wrong_password_fails_the_start_and_a_changed_one_degrades;
        16 Quick, "TLS", "wrong CA, expired, wrong name":
            tls::invalid_certificate_is_never_accepted;
        17 Slow, "failover, lagging replica", "SIGSTOP replicas, kill primary":
            replicas::lagging_replica_loses_what_it_did_not_receive;
        18 Quick, "split brain", "two primaries, link cut by proxy":
            split_brain::each_side_admits_at_most_one_limit;
        19 Quick, "corrupt and huge replies", "proxy sends garbage":
            garbage::corrupt_replies_are_refused_without_harm;
        20 Quick, "herd on recovery", "eight nodes, Redis restarts":
            herd::eight_nodes_do_not_storm_a_recovered_redis;
        21 Slow, "flapping", "1 s up, 1 s down":
            flapping::flapping_redis_fails_no_request;
        22 Quick, "wall clock of a node ±1 h", "clock shim":
            clocks::wall_clock_of_a_node_has_no_effect;
        23 Quick, "clock of Redis ±1 h", "clock shim":
            clocks::clock_step_of_redis_costs_at_most_one_refill;
        24 Slow, "node suspended", "SIGSTOP, SIGCONT":
            paused::suspended_node_admits_at_most_one_burst;
        25 Slow, "crash while holding leases", "kill -9":
            lease_crash::crashed_node_loses_its_lease_for_one_window;
        26 Slow, "invalid policy file", "twelve kinds":
            reload::invalid_policy_file_changes_nothing;
        27 Quick, "disk full", "tmpfs of 1 MiB, filled":
            disk_full::full_disk_fails_only_changes_with_a_clear_error;
        28 Quick, "no descriptors", "prlimit --nofile=64, 200 connections":
            descriptors::connections_without_descriptor_wait_and_are_served;
        29 Quick, "SIGTERM under load", "three nodes, one after the other":
            rolling::replaced_nodes_lose_no_response;
        30 Slow, "slow clients", "headers and bodies byte by byte, responses unread":
            slow_clients::slow_clients_are_closed_and_delay_no_other;
        31 Quick, "huge requests", "1 GB bodies, endless headers, deep JSON":
            huge::endless_requests_are_closed_and_cost_no_memory;
        32 Quick, "long keys", "1024 bytes, one more, 1 MB":
            long_keys::key_of_1024_bytes_is_accepted_and_1025_refused;
        33 Quick, "hostile bytes", "invalid UTF-8, CR, LF, NUL in every field":
            hostile_bytes::hostile_bytes_are_counted_unchanged_or_refused;
        34 Quick, "hostile names", "braces, separators, escapes":
            hostile_keys::hostile_names_never_share_a_counter;
        35 Quick, "limit 0", "in rules and requests":
            zero::limit_of_zero_admits_nothing;
        36 Quick, "invalid numbers", "negative, NaN, 1e308, 2^64":
            numbers::invalid_numbers_are_refused_naming_the_field;
        37 Quick, "windows of 0 and 100 years", "in rules and requests":
            windows::window_of_zero_is_refused_and_a_century_is_exact;
        38 Quick, "extreme costs", "above the limit, 0, below 0":
            costs::cost_above_the_limit_never_passes_and_takes_nothing;
        39 Quick, "duplicates", "JSON fields, headers":
            duplicates::duplicates_are_refused_on_every_endpoint;
        40 Quick, "key flood", "10^7 distinct keys":
            key_flood::exhausted_keys_stay_exhausted_in_a_flood_of_keys;
        41 Quick, "HTTP/2 floods", "rapid reset, endless CONTINUATION frames":
            http2_floods::http2_floods_are_closed_and_delay_no_other;
        42 Quick, "crash while a change is written", "kill -9 during changes":
            cut_changes::interrupted_change_is_complete_or_absent;
        43 Quick, "little memory", "cgroup; floods of keys, connections and bodies":
            little_memory::node_with_the_documented_memory_survives_floods;
        44 Quick, "refund, reply lost", "proxy cuts the reply":
            refunds::refund_with_lost_reply_is_credited_once;
        45 Quick, "start without Redis", "three nodes start, then Redis":
            late_redis::nodes_start_without_redis_and_become_exact;
        46 Slow, "overload", "proxy forwards a tenth of the load; then SIGSTOP":
            overload::overloaded_node_sheds_and_keeps_its_limits;
    }
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn rows_are_in_matrix_order() {
        let numbers: Vec<u8> = all().iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=46).collect::<Vec<u8>>());
    }
}

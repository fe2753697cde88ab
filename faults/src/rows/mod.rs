//! The rows of the matrix, each beside its kin.

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
mod huge;
mod hung;
mod killed;
mod long_keys;
mod numbers;
mod paused;
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

/// All rows that are played here, in their order. Row 25 is of permits; those of other protocols, of ten million
/// keys and of too little memory are not yet here.
pub fn all() -> Vec<Row> {
    rows! {
        1 Quick, "Redis killed", "kill -9, three nodes":
            killed::a_fleet_without_redis_keeps_its_limit;
        2 Quick, "hung", "SIGSTOP at 1000 requests/s":
            hung::a_hung_redis_is_felt_for_one_time_out;
        3 Quick, "slow", "proxy +T/2, then +2T":
            slow::half_the_time_out_is_exact_and_twice_is_degraded;
        4 Quick, "blackhole", "nothing answered, connects neither":
            hung::a_black_hole_is_felt_for_one_time_out;
        5 Quick, "reset mid-reply", "proxy cuts after any byte":
            cuts::no_answer_reaches_another_caller;
        6 Quick, "scripts flushed", "SCRIPT and FUNCTION FLUSH 100/s":
            scripts::lost_scripts_are_not_noticed;
        7 Quick, "restart empty", "kill -9, start":
            killed::a_redis_that_forgot_admits_one_limit_more_at_most;
        8 Quick, "out of memory", "noeviction, maxmemory 1":
            refusing::nobody_passes_by_a_store_without_memory;
        9 Quick, "evicting", "maxmemory-policy allkeys-lru":
            refusing::an_evicting_redis_is_warned_of;
        10 Quick, "READONLY", "REPLICAOF live; failover":
            replicas::a_replica_is_done_without_until_it_is_primary;
        11 Quick, "slots move", "three primaries, migration under load":
            cluster::moving_slots_are_not_noticed;
        12 Quick, "CROSSSLOT", "limits of several slots at once":
            cluster::limits_of_several_slots_are_no_error;
        13 Quick, "LOADING", "proxy answers -LOADING":
            refusing::a_loading_redis_is_not_pressed;
        14 Quick, "BUSY", "EVAL that never ends":
            refusing::a_busy_redis_is_left_alone;
        15 Quick, "auth", "wrong password; changed while running":
            auth::a_wrong_password_ends_the_start_and_a_new_one_degrades;
        16 Quick, "TLS", "wrong authority, expired, wrong name":
            tls::a_certificate_that_does_not_hold_is_never_accepted;
        17 Slow, "failover, lagging replica", "SIGSTOP replicas, kill primary":
            replicas::a_lagging_replica_forgets_what_it_did_not_hear;
        18 Quick, "split brain", "two primaries, link cut by proxy":
            split_brain::each_side_admits_one_limit_at_most;
        19 Quick, "garbage, huge replies", "proxy answers nonsense":
            garbage::nonsense_is_refused_and_harms_nothing;
        20 Quick, "herd on recovery", "eight nodes, Redis back":
            herd::eight_nodes_do_not_storm_a_redis_that_is_back;
        21 Slow, "flapping", "1 s there, 1 s gone":
            flapping::a_redis_that_comes_and_goes_fails_nobody;
        22 Quick, "our wall clock ±1 h", "clock shim":
            clocks::our_own_wall_clock_decides_nothing;
        23 Quick, "clock of Redis ±1 h", "clock shim":
            clocks::a_step_of_redis_s_clock_costs_one_refill_at_most;
        24 Slow, "our node paused", "SIGSTOP, SIGCONT":
            paused::a_node_that_slept_admits_one_burst_at_most;
        26 Slow, "bad policy file", "twelve kinds":
            reload::a_bad_file_changes_nothing;
        27 Quick, "disk full", "tmpfs of 1 MiB, filled":
            disk_full::a_full_disk_fails_changes_clearly_and_nothing_else;
        28 Quick, "no descriptors", "prlimit --nofile=64, 200 connections":
            descriptors::who_finds_no_descriptor_waits_and_is_answered;
        29 Quick, "SIGTERM under load", "three nodes, one after the other":
            rolling::nodes_that_are_replaced_lose_no_answer;
        30 Slow, "slow clients", "heads and bodies byte by byte, answers unread":
            slow_clients::slow_clients_are_closed_and_slow_nobody_else;
        31 Quick, "huge requests", "1 GB bodies, endless heads, deep JSON":
            huge::what_does_not_end_is_cut_off_and_costs_no_memory;
        32 Quick, "long keys", "1024 bytes, one more, 1 MB":
            long_keys::a_key_of_1024_bytes_passes_and_one_byte_more_does_not;
        33 Quick, "bytes that are no text", "not UTF-8, CR, LF, NUL, everywhere":
            hostile_bytes::bytes_count_as_they_are_or_are_refused;
        34 Quick, "names that look like keys", "braces, separators, escapes":
            hostile_keys::no_two_hostile_names_share_a_counter;
        35 Quick, "limit 0", "in rules and requests":
            zero::a_limit_of_nothing_lets_nothing_pass;
        36 Quick, "numbers that are none", "negative, NaN, 1e308, 2^64":
            numbers::a_number_that_is_none_is_refused_by_name;
        37 Quick, "windows of 0 and 100 years", "in rules and requests":
            windows::a_window_has_a_length_and_a_century_does_not_wrap;
        38 Quick, "costs that never fit", "above the limit, 0, below 0":
            costs::a_cost_that_never_fits_is_told_so_and_takes_nothing;
        39 Quick, "what comes twice", "JSON fields, lines of a head":
            duplicates::what_comes_twice_is_refused_alike_on_every_path;
        42 Quick, "crash while a change is written", "kill -9 in the middle of changes":
            cut_changes::a_change_cut_off_is_made_whole_or_not_at_all;
    }
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn the_rows_are_in_the_order_of_the_matrix() {
        let numbers: Vec<u8> = all().iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=24).chain(26..=39).chain([42]).collect::<Vec<u8>>());
    }
}

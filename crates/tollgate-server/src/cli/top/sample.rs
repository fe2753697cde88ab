//! Sample events for tests, with hostile keys.

use super::state::State;
use super::update::Update;
use crate::cli::client::Event;

pub(super) const POLICY: &str = r#"{"version":"9f3c","file":"/etc/policy.yaml","rules_total":3,"error":null,"warnings":[],"later":1,
    "rules":[
        {"rule":"search","mode":"enforce","distributed":"shadow","on_store_loss":"local","per":["client"],"limits":["10/min","100/h"],"next":["5/min"]},
        {"rule":"login","mode":"shadow","distributed":"on","on_store_loss":"deny","per":["ip"],"limits":["5/min"],"next":[]},
        {"rule":"default","mode":"enforce","distributed":"on","on_store_loss":"local","per":["key"],"limits":["100/min"],"next":[]}]}"#;

pub(super) const HISTORY: &str = r#"{"points":[
    {"t":1794843601000,"allowed":10,"refused":2.5,"degraded":0,"errors":0,"p50_us":210,"p99_us":900,"rules":{"search":[12,2,0,3,1]}}]}"#;

pub(super) const FRAME: &str = r#"{"t":1794843604000,"node":"web-1","scope":"fleet","later":{},
    "points":[{"t":1794843603000,"allowed":20,"refused":5,"degraded":0,"errors":0,"p50_us":null,"p99_us":null,"rules":{"search":[22,2,0,3,1,9]}}],
    "now":{"allowed":1234.5,"refused":61.7,"degraded":0,"errors":0,"p50_us":210,"p99_us":1900},
    "store":{"kind":"redis","address":"10.0.0.5:6379","server":"valkey 9.1","breaker":"closed","keys":null,"max_keys":null,"warning":null},
    "nodes":[
        {"id":"web-1","address":"10.0.0.7:8080","state":"Up","registered_at":"2026-11-16T15:00:00Z","allowed":1000,"refused":60,"p99_us":1900,"reporting":true,"silent":false,"last_seen":"2026-11-16T15:00:02Z","breaker":"closed","version":"0.1.0","policy":"9f3c","warning":null},
        {"id":"web-2","address":"10.0.0.8:8080","state":"Up","registered_at":"2026-11-16T15:00:00Z","allowed":0,"refused":0,"p99_us":null,"reporting":false,"breaker":null,"version":null,"policy":null,"warning":null}],
    "refused":[
        {"key":"c1","tenant":"","rule":"search","limit":"60s","limit_text":"10/min","count":37,"rate":2.5,"overridden":true,"last_at":1794843602500,"facts":{"client":"c1","path":"/search a"}},
        {"key":"\u001b[2J\u001b]0;owned\u0007","tenant":"acme","rule":"default","limit":"60s","count":12,"rate":0,"overridden":false,"last_at":1794843600123,"facts":null},
        {"key":"\u202egpj.exe\u009b31m","tenant":"","rule":"default","limit":"60s","count":9,"last_at":1794843500123,"facts":null},
        {"key":"日本語のとても長い鍵日本語のとても長い鍵日本語のとても長い鍵日本語のとても長い鍵","tenant":"","rule":"default","limit":"60s","count":3,"last_at":1794843600123,"facts":null}]}"#;

/// Parses an event.
pub(super) fn update(name: &str, data: &str) -> Update {
    let event = Event { name: name.to_owned(), data: data.to_owned() };
    Update::from_event(&event)
        .unwrap_or_else(|error| panic!("{error}: {data}"))
        .expect("a known event")
}

/// Returns the state after the first frame.
pub(super) fn state() -> State {
    let mut state = State::new("http://127.0.0.1:8080");
    for (name, data) in [("policy", POLICY), ("history", HISTORY), ("frame", FRAME)] {
        state.apply(update(name, data));
    }
    state
}

/// Returns the sample state with text replacements in its events.
pub(super) fn state_with(changes: &[(&str, &str)]) -> State {
    let change = |text: &str| {
        changes.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
    };
    let (policy, frame) = (change(POLICY), change(FRAME));
    assert!((policy.as_str(), frame.as_str()) != (POLICY, FRAME), "no replacement matched");
    let mut state = state();
    state.apply(update("policy", &policy));
    state.apply(update("frame", &frame));
    state
}

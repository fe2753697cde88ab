//! Files that are looked at now and then: what is new, and whole.

/// Why one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadTrigger {
    /// It is time to.
    Poll,
    /// Somebody has asked for it, and says with that that the file is whole.
    Requested,
}

/// What was last taken from a file, and what was last seen there.
#[derive(Debug)]
pub(crate) struct DebouncedFile<T> {
    taken: T,
    seen: Option<T>,
}

impl<T: Clone + PartialEq> DebouncedFile<T> {
    /// Begins with what is in force, so that no change after that goes unnoticed.
    pub(crate) fn new(taken: T) -> Self {
        Self { taken, seen: None }
    }

    /// Whether to take what is seen now. Whoever writes a file in place may be half way through: only what
    /// has stayed the same since the last look is taken for whole. The same is not taken twice.
    pub(crate) fn takes(&mut self, look: ReadTrigger, now: &T) -> bool {
        let is_whole = self.seen.replace(now.clone()).as_ref() == Some(now);
        let takes = look == ReadTrigger::Requested || (is_whole && *now != self.taken);
        if takes {
            self.taken = now.clone();
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_taken_once_it_has_stayed() {
        let mut file = DebouncedFile::new("old");
        assert!(!file.takes(ReadTrigger::Poll, &"old") && !file.takes(ReadTrigger::Poll, &"old"));
        assert!(!file.takes(ReadTrigger::Poll, &"ne"));
        assert!(!file.takes(ReadTrigger::Poll, &"new"));
        assert!(file.takes(ReadTrigger::Poll, &"new"));
        assert!(!file.takes(ReadTrigger::Poll, &"new"));
    }

    #[test]
    fn who_asks_need_not_wait() {
        let mut file = DebouncedFile::new("old");
        assert!(file.takes(ReadTrigger::Requested, &"old"));
        assert!(file.takes(ReadTrigger::Requested, &"new"));
        assert!(!file.takes(ReadTrigger::Poll, &"new"));
    }
}

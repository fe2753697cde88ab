//! Detects changes of polled files, and ignores files that are still being written.

/// Why a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadTrigger {
    /// Periodic poll.
    Poll,
    /// SIGHUP or an API request, which implies that the file is complete.
    Requested,
}

/// The content of a file that was last accepted, and the content that was last read.
#[derive(Debug)]
pub(crate) struct DebouncedFile<T> {
    accepted: T,
    last_read: Option<T>,
}

impl<T: Clone + PartialEq> DebouncedFile<T> {
    /// Starts with the content in use, so that every later change is detected.
    pub(crate) fn new(accepted: T) -> Self {
        Self { accepted, last_read: None }
    }

    /// Returns whether to use the content just read. A file that is written in place may be incomplete, so a poll
    /// accepts only content that two reads in a row returned. A poll does not accept the same content twice.
    pub(crate) fn accept(&mut self, trigger: ReadTrigger, content: &T) -> bool {
        let is_stable = self.last_read.replace(content.clone()).as_ref() == Some(content);
        let is_accepted =
            trigger == ReadTrigger::Requested || (is_stable && *content != self.accepted);
        if is_accepted {
            self.accepted = content.clone();
        }
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_accepts_stable_content_once() {
        let mut file = DebouncedFile::new("old");
        assert!(!file.accept(ReadTrigger::Poll, &"old") && !file.accept(ReadTrigger::Poll, &"old"));
        assert!(!file.accept(ReadTrigger::Poll, &"ne"));
        assert!(!file.accept(ReadTrigger::Poll, &"new"));
        assert!(file.accept(ReadTrigger::Poll, &"new"));
        assert!(!file.accept(ReadTrigger::Poll, &"new"));
    }

    #[test]
    fn request_accepts_content_immediately() {
        let mut file = DebouncedFile::new("old");
        assert!(file.accept(ReadTrigger::Requested, &"old"));
        assert!(file.accept(ReadTrigger::Requested, &"new"));
        assert!(!file.accept(ReadTrigger::Poll, &"new"));
    }
}

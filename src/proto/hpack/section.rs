//! Owns what is kept of a field section, and the rules that hold for it as a whole (RFC 9113 §8.2, §8.3;
//! the same in RFC 9114 §4.2, §4.3).

use super::field::{Field, Meaning};

/// Which section of a message a field block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The header section of a response, interim or final.
    Response,
    /// The trailer section.
    Trailers,
}

/// What is kept of a field section.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Section {
    /// 100 to 999 for [`Kind::Response`]; 0 for trailers and when malformed.
    pub status: u16,
    /// The Content-Length of a response; absent when malformed.
    pub content_length: Option<u64>,
    /// Field lines, pseudo-header fields among them.
    pub fields: u32,
    /// Bytes of all names and values, and 32 for each line (RFC 9113 §6.5.2).
    pub size: u64,
    /// The first reason why the message is malformed (RFC 9113 §8.1.1), a stream error.
    pub malformed: Option<Malformed>,
}

/// Why a message is malformed (RFC 9113 §8.1.1): a stream error of type PROTOCOL_ERROR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Malformed {
    /// A response without `:status` (RFC 9113 §8.3.2).
    #[error("a response without :status")]
    MissingStatus,
    /// More than one `:status` (RFC 9113 §8.3).
    #[error("more than one :status")]
    DuplicateStatus,
    /// A `:status` that is not three digits, or is below 100 (RFC 9110 §15).
    #[error("a :status that is not three digits from 100 to 999")]
    InvalidStatus,
    /// A pseudo-header field other than `:status` (RFC 9113 §8.3).
    #[error("a pseudo-header field other than :status in a response")]
    UnknownPseudoHeader,
    /// A pseudo-header field behind a regular field (RFC 9113 §8.3).
    #[error("a pseudo-header field behind a regular field")]
    MisplacedPseudoHeader,
    /// A pseudo-header field in a trailer section (RFC 9113 §8.1).
    #[error("a pseudo-header field in a trailer section")]
    PseudoHeaderInTrailers,
    /// A field name with upper-case letters (RFC 9113 §8.2.1).
    #[error("a field name in upper case")]
    UppercaseName,
    /// An empty field name, or one with bytes that RFC 9113 §8.2.1 rules out.
    #[error("a field name that is empty or holds whitespace, a colon, a control or a non-ASCII byte")]
    InvalidName,
    /// NUL, CR or LF in a field value (RFC 9113 §8.2.1).
    #[error("a NUL, CR or LF in a field value")]
    InvalidValue,
    /// A field value that starts or ends with SP or HTAB (RFC 9113 §8.2.1).
    #[error("a field value that starts or ends with whitespace")]
    WhitespaceAroundValue,
    /// Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding or Upgrade (RFC 9113 §8.2.2).
    #[error("a field specific to HTTP/1 connections, as Connection or Transfer-Encoding")]
    ConnectionSpecificField,
    /// A Content-Length that is no decimal number, or does not fit in 64 bits (RFC 9110 §8.6).
    #[error("a Content-Length that is not a decimal number of at most 64 bits")]
    InvalidContentLength,
    /// Content-Length values that differ (RFC 9110 §8.6).
    #[error("several Content-Length values that differ")]
    ConflictingContentLength,
}

impl Malformed {
    /// Stable kebab-case name, used as the `kind` of an error count.
    pub fn kind(self) -> &'static str {
        match self {
            Self::MissingStatus => "missing-status",
            Self::DuplicateStatus => "duplicate-status",
            Self::InvalidStatus => "invalid-status",
            Self::UnknownPseudoHeader => "unknown-pseudo-header",
            Self::MisplacedPseudoHeader => "misplaced-pseudo-header",
            Self::PseudoHeaderInTrailers => "pseudo-header-in-trailers",
            Self::UppercaseName => "uppercase-field-name",
            Self::InvalidName => "invalid-field-name",
            Self::InvalidValue => "invalid-field-value",
            Self::WhitespaceAroundValue => "whitespace-around-field-value",
            Self::ConnectionSpecificField => "connection-specific-field",
            Self::InvalidContentLength => "invalid-content-length",
            Self::ConflictingContentLength => "conflicting-content-length",
        }
    }

    /// Whether this is said of a pseudo-header field.
    fn is_of_pseudo_header(self) -> bool {
        matches!(self, Self::InvalidStatus | Self::UnknownPseudoHeader)
    }

    /// Whether this is said of the value of a Content-Length.
    fn is_of_content_length(self) -> bool {
        matches!(self, Self::InvalidContentLength | Self::ConflictingContentLength)
    }
}

/// A section that is larger than its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::proto) struct TooLarge;

/// A section that is being read.
#[derive(Debug)]
pub(in crate::proto) struct Audit {
    section: Section,
    kind: Kind,
    list_limit: u64,
    /// Whether a field that is no pseudo-header field came.
    regular: bool,
}

impl Audit {
    pub(in crate::proto) fn new(kind: Kind, list_limit: u32) -> Self {
        Self { section: Section::default(), kind, list_limit: list_limit.into(), regular: false }
    }

    /// The next field of the section.
    ///
    /// # Errors
    /// [`TooLarge`] when the section has become larger than its limit.
    #[inline]
    pub(in crate::proto) fn add(&mut self, field: &Field) -> Result<(), TooLarge> {
        // Every field counts 32 at least, so that the limit bounds both.
        self.section.fields += 1;
        self.section.size += u64::from(field.size);
        if self.section.size > self.list_limit {
            return Err(TooLarge);
        }
        match field.meaning {
            Meaning::Ordinary => self.regular = true,
            Meaning::Status(status) => self.status(status),
            Meaning::ContentLength(length) => self.content_length(length),
            Meaning::Malformed(reason) => self.malformed(reason),
        }
        Ok(())
    }

    /// The section is complete.
    #[inline]
    pub(in crate::proto) fn finish(mut self) -> Section {
        if self.kind == Kind::Response && self.section.status == 0 {
            self.note(Malformed::MissingStatus);
        }
        if self.section.malformed.is_some() {
            self.section.status = 0;
            self.section.content_length = None;
        }
        self.section
    }

    #[inline]
    fn status(&mut self, status: u16) {
        if let Some(reason) = self.pseudo_header_fault() {
            self.note(reason);
        } else if self.section.status != 0 {
            self.note(Malformed::DuplicateStatus);
        } else {
            self.section.status = status;
        }
    }

    #[inline]
    fn content_length(&mut self, length: u64) {
        self.regular = true;
        if self.kind == Kind::Trailers {
            // It frames nothing there; RFC 9110 §6.5.1 has recipients leave such a field out.
            return;
        }
        match self.section.content_length {
            Some(known) if known != length => self.note(Malformed::ConflictingContentLength),
            _ => self.section.content_length = Some(length),
        }
    }

    #[cold]
    fn malformed(&mut self, reason: Malformed) {
        if reason.is_of_pseudo_header() {
            let reason = self.pseudo_header_fault().unwrap_or(reason);
            self.note(reason);
        } else {
            self.regular = true;
            // As above: a Content-Length that frames nothing may say anything.
            if self.kind != Kind::Trailers || !reason.is_of_content_length() {
                self.note(reason);
            }
        }
    }

    /// What is wrong with a pseudo-header field at this place, whichever it is.
    #[inline]
    fn pseudo_header_fault(&self) -> Option<Malformed> {
        match self.kind {
            Kind::Trailers => Some(Malformed::PseudoHeaderInTrailers),
            Kind::Response if self.regular => Some(Malformed::MisplacedPseudoHeader),
            Kind::Response => None,
        }
    }

    #[cold]
    fn note(&mut self, reason: Malformed) {
        self.section.malformed.get_or_insert(reason);
    }
}

//! The counters that a status or a method chooses.

use super::rows::Metric;

/// The statuses that have a counter of their own, in order.
const STATUSES: &[(u16, Metric)] = &[
    (100, Metric::Responses100),
    (101, Metric::Responses101),
    (200, Metric::Responses200),
    (201, Metric::Responses201),
    (202, Metric::Responses202),
    (203, Metric::Responses203),
    (204, Metric::Responses204),
    (205, Metric::Responses205),
    (206, Metric::Responses206),
    (300, Metric::Responses300),
    (301, Metric::Responses301),
    (302, Metric::Responses302),
    (303, Metric::Responses303),
    (304, Metric::Responses304),
    (305, Metric::Responses305),
    (307, Metric::Responses307),
    (308, Metric::Responses308),
    (400, Metric::Responses400),
    (401, Metric::Responses401),
    (402, Metric::Responses402),
    (403, Metric::Responses403),
    (404, Metric::Responses404),
    (405, Metric::Responses405),
    (406, Metric::Responses406),
    (407, Metric::Responses407),
    (408, Metric::Responses408),
    (409, Metric::Responses409),
    (410, Metric::Responses410),
    (411, Metric::Responses411),
    (412, Metric::Responses412),
    (413, Metric::Responses413),
    (414, Metric::Responses414),
    (415, Metric::Responses415),
    (416, Metric::Responses416),
    (417, Metric::Responses417),
    (421, Metric::Responses421),
    (422, Metric::Responses422),
    (425, Metric::Responses425),
    (429, Metric::Responses429),
    (431, Metric::Responses431),
    (500, Metric::Responses500),
    (501, Metric::Responses501),
    (502, Metric::Responses502),
    (503, Metric::Responses503),
    (504, Metric::Responses504),
    (505, Metric::Responses505),
];

impl Metric {
    /// The counter of one response status; `None` for those that ATS does not
    /// count singly.
    #[must_use]
    pub fn of_status(status: u16) -> Option<Self> {
        let at = STATUSES.binary_search_by_key(&status, |(of, _)| *of).ok()?;
        STATUSES.get(at).map(|(_, metric)| *metric)
    }

    /// The counter of a status's hundred; anything odd counts as 5xx.
    #[must_use]
    pub const fn of_status_class(status: u16) -> Self {
        match status / 100 {
            1 => Self::Responses1xx,
            2 => Self::Responses2xx,
            3 => Self::Responses3xx,
            4 => Self::Responses4xx,
            _ => Self::Responses5xx,
        }
    }

    /// The counter of a request method, which is case-sensitive.
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "GET" => Self::GetRequests,
            "HEAD" => Self::HeadRequests,
            "POST" => Self::PostRequests,
            "PUT" => Self::PutRequests,
            "DELETE" => Self::DeleteRequests,
            "PURGE" => Self::PurgeRequests,
            "PUSH" => Self::PushRequests,
            "OPTIONS" => Self::OptionsRequests,
            "TRACE" => Self::TraceRequests,
            "CONNECT" => Self::ConnectRequests,
            _ => Self::ExtensionMethodRequests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_finds_the_row_that_names_it() {
        for (status, metric) in STATUSES {
            let name = format!("proxy.process.http.{status}_responses");
            assert_eq!(metric.spec().name, name);
            assert_eq!(Metric::of_status(*status), Some(*metric));
        }
        assert_eq!(Metric::of_status(299), None);
        assert_eq!(Metric::of_status_class(299), Metric::Responses2xx);
    }

    #[test]
    fn a_method_in_small_letters_is_an_extension() {
        assert_eq!(Metric::of_method("GET"), Metric::GetRequests);
        assert_eq!(Metric::of_method("get"), Metric::ExtensionMethodRequests);
    }
}

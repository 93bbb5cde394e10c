//! `HdrHistogram` interval logs, byte for byte as `perf/local/hlog.py` writes them.

use std::fmt::Write;

/// The histogram of one operation, kind and span of time; times in Unix seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub phase: String,
    pub operation: String,
    pub kind: &'static str,
    pub iteration: u32,
    pub start_s: f64,
    pub length_s: f64,
    pub max_us: u64,
    /// V2, compressed, base64; values in microseconds.
    pub encoded: String,
}

impl Interval {
    /// Gives its line of the log.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // at most an hour
    pub fn line(&self) -> String {
        format!(
            "Tag={}:{}:{}:{},{:.6},{:.6},{:.3},{}\n",
            self.phase,
            self.operation,
            self.kind,
            self.iteration,
            self.start_s,
            self.length_s,
            self.max_us as f64 / 1000.0,
            self.encoded
        )
    }
}

/// Gives the head of a log that starts at `start_s` (Unix time).
#[must_use]
pub fn head(start_s: f64) -> String {
    let mut text = String::from(
        "#[Knickpoint: Tag is phase:operation:kind:iteration; values in µs, max in ms]\n\
         #[Histogram log format version 1.3]\n",
    );
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "#[StartTime: {start_s:.3} (seconds since epoch), {}]",
        utc(start_s)
    );
    text + "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
}

/// Writes a Unix time as a date, cut to the second.
///
/// The civil calendar from a count of days: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// 2013.
#[allow(clippy::cast_possible_truncation)] // cut to the second on purpose
fn utc(unix_s: f64) -> String {
    let seconds = unix_s.floor() as i64;
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468; // days since 0000-03-01
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{head, utc};

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0.0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399.9), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400.0), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_772_330_400.0), "2026-03-01T02:00:00Z");
    }

    #[test]
    fn a_log_begins_as_the_standard_tools_expect() {
        let text = head(1_772_330_400.0);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "#[Histogram log format version 1.3]");
        assert_eq!(
            lines[2],
            "#[StartTime: 1772330400.000 (seconds since epoch), 2026-03-01T02:00:00Z]"
        );
        assert_eq!(lines.len(), 4);
    }
}

//! Owns the way between an HdrHistogram of nanoseconds and a [`Latency`]: figures in microseconds
//! beside the compressed histogram they were read from, so that any other percentile, and any sum
//! of rounds, can be computed from the file later.
//!
//! Format: HdrHistogram V2, zlib-compressed, base64 (standard alphabet, padded), as every
//! implementation of HdrHistogram reads it.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::Latency;

/// A histogram of a results file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("histogram {0}")]
pub struct HistogramError(String);

/// The figures of a histogram of nanoseconds, in µs, with the histogram itself; `None` when it is
/// empty, because a mean over nothing is not a figure.
pub fn latency(histogram: &Histogram<u64>) -> Option<Latency> {
    if histogram.is_empty() {
        return None;
    }
    let at = |percentile| quantile_us(histogram, percentile);
    Some(Latency {
        count: histogram.len(),
        min: micros(histogram.min()),
        mean: histogram.mean() / NANOS_PER_MICRO,
        stdev: histogram.stdev() / NANOS_PER_MICRO,
        p50: at(50.0),
        p75: at(75.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p99_9: at(99.9),
        p99_99: at(99.99),
        max: micros(histogram.max()),
        histogram: encode(histogram),
    })
}

/// A percentile (0 to 100) of `latency` in µs: one of its own figures where it has that one, else
/// read from its histogram.
///
/// # Errors
/// A percentile out of range, or a histogram that is damaged.
pub fn percentile(latency: &Latency, percentile: f64) -> Result<f64, HistogramError> {
    if !(0.0..=100.0).contains(&percentile) {
        return Err(HistogramError(format!("has no percentile {percentile}; it must be 0 to 100")));
    }
    let kept = [
        (50.0, latency.p50),
        (75.0, latency.p75),
        (90.0, latency.p90),
        (95.0, latency.p95),
        (99.0, latency.p99),
        (99.9, latency.p99_9),
        (99.99, latency.p99_99),
        (100.0, latency.max),
    ];
    match kept.iter().find(|(known, _)| *known == percentile) {
        Some((_, figure)) => Ok(*figure),
        // The extremes may be known better than the histogram has them, to the nanosecond.
        None => Ok(quantile_us(&decode(latency)?, percentile).max(latency.min).min(latency.max)),
    }
}

/// The histogram of `latency`, in nanoseconds.
///
/// # Errors
/// Says what is wrong with it: not base64, not a V2 histogram, or not of `count` samples.
pub fn decode(latency: &Latency) -> Result<Histogram<u64>, HistogramError> {
    let compressed =
        STANDARD.decode(&latency.histogram).map_err(|e| HistogramError(format!("is not base64: {e}")))?;
    let histogram = inflate(&compressed)?;
    if histogram.len() != latency.count {
        return Err(HistogramError(format!(
            "holds {} samples where `count` says {}",
            histogram.len(),
            latency.count
        )));
    }
    Ok(histogram)
}

/// The distribution over several rounds: every sample of each, not an average of percentiles.
/// `None` when there is none.
///
/// # Errors
/// As [`decode`].
pub fn merge<'a>(
    rounds: impl IntoIterator<Item = &'a Latency>,
) -> Result<Option<Histogram<u64>>, HistogramError> {
    let mut merged: Option<Histogram<u64>> = None;
    for round in rounds {
        let histogram = decode(round)?;
        match &mut merged {
            None => merged = Some(histogram),
            Some(merged) => {
                merged.auto(true);
                merged.add(&histogram).map_err(|e| HistogramError(format!("cannot be added: {e}")))?;
            }
        }
    }
    Ok(merged)
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Writing to a Vec cannot fail, and the encoding itself only refuses counts above 2^63.
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("counts are below 2^63");
    STANDARD.encode(bytes)
}

/// Inflates and parses one histogram. The lengths stated inside are foreign input: what they may
/// make us allocate is bounded here, before the parser believes them.
fn inflate(compressed: &[u8]) -> Result<Histogram<u64>, HistogramError> {
    let bad = |what: &str| HistogramError(what.to_owned());
    let Some((head, body)) = compressed.split_at_checked(COMPRESSED_HEAD) else {
        return Err(bad("is too short"));
    };
    if head[..4] != V2_COMPRESSED_COOKIE {
        return Err(bad("is not in the compressed V2 format"));
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(body)
        .take(INFLATED_LIMIT + 1)
        .read_to_end(&mut plain)
        .map_err(|e| HistogramError(format!("does not inflate: {e}")))?;
    if plain.len() as u64 > INFLATED_LIMIT {
        return Err(bad("inflates to more than any histogram of latencies"));
    }
    let stated = plain.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    if stated.is_none_or(|stated| u64::from(stated) > plain.len() as u64) {
        return Err(bad("is cut short"));
    }
    Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|e| HistogramError(format!("is damaged: {e}")))
}

fn quantile_us(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    micros(histogram.value_at_percentile(percentile))
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_MICRO
}

const NANOS_PER_MICRO: f64 = 1e3;
/// First bytes of a compressed V2 histogram; the four after it are the length of what follows.
const V2_COMPRESSED_COOKIE: [u8; 4] = 0x1c84_9314u32.to_be_bytes();
const COMPRESSED_HEAD: usize = 8;
/// A histogram of 1 ns to 1 h at three digits has some 40 000 counts of at most nine bytes.
const INFLATED_LIMIT: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(samples: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for sample in samples {
            histogram.record(*sample).unwrap();
        }
        histogram
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        assert_eq!(latency(&of(&[])), None);
        assert_eq!(merge([]).unwrap(), None);
    }

    #[test]
    fn figures_are_in_microseconds() {
        let figures = latency(&of(&[1_000, 2_000, 3_000_000])).unwrap();
        assert_eq!(figures.count, 3);
        assert!((figures.p50 - 2.0).abs() < 0.002, "{}", figures.p50);
        assert!((figures.max - 3_000.0).abs() < 3.0, "{}", figures.max);
        assert!((figures.mean - 1_001.0).abs() < 1.0, "{}", figures.mean);
    }

    #[test]
    fn damaged_histograms_are_errors_and_never_panics() {
        let good = latency(&of(&[5_000; 40])).unwrap();
        let raw = STANDARD.decode(&good.histogram).unwrap();
        for length in 0..raw.len() {
            let cut = Latency { histogram: STANDARD.encode(&raw[..length]), ..good.clone() };
            assert!(decode(&cut).is_err(), "cut to {length}");
        }
        assert!(decode(&Latency { histogram: "&".into(), ..good.clone() }).is_err());
        assert!(decode(&Latency { count: 41, ..good.clone() }).is_err());
        assert!(percentile(&good, -1.0).is_err());
        assert!(percentile(&good, f64::NAN).is_err());
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_believed() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::copy(&mut std::io::repeat(0).take(64 << 20), &mut zlib).unwrap();
        let mut bomb = V2_COMPRESSED_COOKIE.to_vec();
        bomb.extend([0xff; 4]);
        bomb.extend(zlib.finish().unwrap());
        assert!(inflate(&bomb).unwrap_err().to_string().contains("more than"));
    }

    proptest! {
        #[test]
        fn a_histogram_reads_back_as_written(samples in prop::collection::vec(1u64..3_600_000_000_000, 1..200)) {
            let histogram = of(&samples);
            let figures = latency(&histogram).unwrap();
            prop_assert_eq!(&decode(&figures).unwrap(), &histogram);
            for p in [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0] {
                prop_assert_eq!(percentile(&figures, p).unwrap(), quantile_us(&histogram, p));
            }
        }

        #[test]
        fn percentiles_are_ordered_and_lie_between_the_extremes(
            samples in prop::collection::vec(1u64..10_000_000_000, 1..100),
            mut asked in prop::collection::vec(0.0f64..=100.0, 1..10),
        ) {
            let figures = latency(&of(&samples)).unwrap();
            asked.sort_by(f64::total_cmp);
            let read: Vec<f64> = asked.iter().map(|p| percentile(&figures, *p).unwrap()).collect();
            prop_assert!(read.is_sorted(), "{:?}", read);
            prop_assert!(figures.min <= read[0] && read[read.len() - 1] <= figures.max);
            prop_assert!(figures.min <= figures.mean && figures.mean <= figures.max);
        }

        #[test]
        fn merged_rounds_hold_every_sample(
            a in prop::collection::vec(1u64..1_000_000_000, 1..50),
            b in prop::collection::vec(1u64..1_000_000_000, 1..50),
        ) {
            let rounds = [latency(&of(&a)).unwrap(), latency(&of(&b)).unwrap()];
            let merged = merge(&rounds).unwrap().unwrap();
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = inflate(&bytes);
            let mut disguised = V2_COMPRESSED_COOKIE.to_vec();
            disguised.extend(bytes);
            let _ = inflate(&disguised);
        }
    }
}

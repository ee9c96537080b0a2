//! The `traceparent` header of a record: text of strangers, read by W3C's rules and by nothing else.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use crate::engine::batch::headers::{Search, header_values};

/// The header's name.
const NAME: &[u8] = b"traceparent";
/// Length of its only form.
const LENGTH: usize = 55;
/// A batch is looked through within these bounds: packed records are unpacked for nothing else.
const SEARCH: Search =
    Search { plain_bytes: 256 << 10, unpacked_bytes: 64 << 10, values: MOST_OF_A_BATCH, value_bytes: LENGTH };
/// Different contexts that are taken from one batch.
const MOST_OF_A_BATCH: usize = 8;

/// The different contexts that the records of a batch carry, as far as they are looked for.
pub(super) fn of_batch(batch: &[u8]) -> Vec<SpanContext> {
    header_values(batch, NAME, &SEARCH).iter().filter_map(|value| read(value)).collect()
}

/// `00-<32 digits>-<16 digits>-<2 digits>`, lower case; neither id all zeros. Later versions begin the same way, but may
/// be longer; those are not taken.
fn read(value: &[u8]) -> Option<SpanContext> {
    let text = std::str::from_utf8(value).ok().filter(|text| text.len() == LENGTH)?;
    let mut fields = text.split('-');
    let mut digits = |count: usize| {
        let field = fields.next().filter(|field| field.len() == count)?;
        field.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')).then_some(field)
    };
    let version = digits(2).filter(|version| *version != "ff");
    let trace = TraceId::from_hex(digits(32).filter(|_| version.is_some())?).ok()?;
    let span = SpanId::from_hex(digits(16)?).ok()?;
    let flags = u8::from_str_radix(digits(2)?, 16).ok()?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests;

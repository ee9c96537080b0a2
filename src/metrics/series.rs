//! Families of series behind typed handles. Every series of a closed label set exists from the start, at 0, so that a
//! rate sees the first event.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::{
    Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry,
};

use super::labels::Label;

/// A registry that knows the prefix of every name.
#[derive(Debug)]
pub(super) struct Table(pub(super) Registry);

impl Table {
    fn add<C: Collector + Clone + 'static>(&self, family: C) -> Result<C, Error> {
        self.0.register(Box::new(family.clone()))?;
        Ok(family)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.add(IntCounter::with_opts(opts(name, help))?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.add(Gauge::with_opts(opts(name, help))?)
    }

    pub(super) fn int_gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.add(IntGauge::with_opts(opts(name, help))?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, Error> {
        self.add(Histogram::with_opts(shape(name, help, buckets))?)
    }

    /// A gauge that is 1 and says what it has to say in its labels.
    pub(super) fn fact(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<(), Error> {
        let options = labels.iter().fold(opts(name, help), |all, (label, value)| all.const_label(*label, *value));
        let gauge = self.add(IntGauge::with_opts(options)?)?;
        gauge.set(1);
        Ok(())
    }

    pub(super) fn counters<L: Label>(&self, name: &str, help: &str, label: &str) -> Result<Counters<L>, Error> {
        let family = self.add(IntCounterVec::new(opts(name, help), &[label])?)?;
        let series = L::ALL.iter().map(|value| Ok((*value, family.get_metric_with_label_values(&[value.text()])?)));
        Ok(Counters(series.collect::<Result<_, Error>>()?))
    }

    /// Counters under two labels.
    pub(super) fn pairs<A: Label, B: Label>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; 2],
    ) -> Result<Counters<(A, B)>, Error> {
        let family = self.add(IntCounterVec::new(opts(name, help), &labels)?)?;
        let all = A::ALL.iter().flat_map(|a| B::ALL.iter().map(move |b| (*a, *b)));
        let series = all.map(|(a, b)| Ok(((a, b), family.get_metric_with_label_values(&[a.text(), b.text()])?)));
        Ok(Counters(series.collect::<Result<_, Error>>()?))
    }

    pub(super) fn gauges<L: Label>(&self, name: &str, help: &str, label: &str) -> Result<Gauges<L>, Error> {
        let family = self.add(IntGaugeVec::new(opts(name, help), &[label])?)?;
        let series = L::ALL.iter().map(|value| Ok((*value, family.get_metric_with_label_values(&[value.text()])?)));
        Ok(Gauges(series.collect::<Result<_, Error>>()?))
    }

    pub(super) fn histograms<L: Label>(
        &self,
        (name, help): (&str, &str),
        label: &str,
        buckets: &[f64],
    ) -> Result<Histograms<L>, Error> {
        let family = self.add(HistogramVec::new(shape(name, help, buckets), &[label])?)?;
        let series = L::ALL.iter().map(|value| Ok((*value, family.get_metric_with_label_values(&[value.text()])?)));
        Ok(Histograms(series.collect::<Result<_, Error>>()?))
    }

    /// A family whose label set is not an enum; whoever calls bounds it.
    pub(super) fn open_counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
        self.add(IntCounterVec::new(opts(name, help), labels)?)
    }

    /// A family whose label set is not an enum; whoever calls bounds it.
    pub(super) fn open_gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, Error> {
        self.add(GaugeVec::new(opts(name, help), labels)?)
    }

    /// A family whose label set is not an enum; whoever calls bounds it.
    pub(super) fn open_histograms(
        &self,
        (name, help): (&str, &str),
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<HistogramVec, Error> {
        self.add(HistogramVec::new(shape(name, help, buckets), labels)?)
    }
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("oncelog")
}

fn shape(name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
    HistogramOpts::new(name, help).namespace("oncelog").buckets(buckets.to_vec())
}

/// One counter for each value of a closed label set.
#[derive(Debug)]
pub(super) struct Counters<L>(BTreeMap<L, IntCounter>);

impl<L: Ord> Counters<L> {
    pub(super) fn inc(&self, label: L) {
        if let Some(series) = self.0.get(&label) {
            series.inc();
        }
    }
}

/// One gauge for each value of a closed label set.
#[derive(Debug)]
pub(super) struct Gauges<L>(BTreeMap<L, IntGauge>);

impl<L: Ord> Gauges<L> {
    pub(super) fn set(&self, label: L, value: i64) {
        if let Some(series) = self.0.get(&label) {
            series.set(value);
        }
    }

    pub(super) fn add(&self, label: L, change: i64) {
        if let Some(series) = self.0.get(&label) {
            series.add(change);
        }
    }
}

/// One histogram for each value of a closed label set.
#[derive(Debug)]
pub(super) struct Histograms<L>(BTreeMap<L, Histogram>);

impl<L: Ord> Histograms<L> {
    pub(super) fn observe(&self, label: L, value: f64) {
        if let Some(series) = self.0.get(&label) {
            series.observe(value);
        }
    }
}

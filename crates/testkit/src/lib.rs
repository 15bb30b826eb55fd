//! Dev only: builders, text scenarios, properties and oracles.

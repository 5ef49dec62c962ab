//! Floor 5: start order, stop order, signals and privileges.

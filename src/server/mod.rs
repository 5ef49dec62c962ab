//! Floor 5: start order, stop order, signals and privileges.

pub mod limits;
pub mod privileges;
pub mod state;

//! Floor 1: the RFCs' decisions as pure functions.

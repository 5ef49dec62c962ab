//! Floor 3: listeners, transactions, origins and fills.

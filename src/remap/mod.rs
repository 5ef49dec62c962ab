//! Floor 2: which rule a request takes, and what it becomes.

//! Floor 4: the control socket, reload and the admin listener.

//! Floor 1: raw devices and files behind one seam.

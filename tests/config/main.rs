//! Configuration files as they come from elsewhere: ATS's own, and any bytes.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod any_input;
mod ats_files;
mod own_files;

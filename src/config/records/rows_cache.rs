//! Rows from `accept_threads` to `cache.*`: programs, and the cache engine.

/// Adds this file's rows to those before and hands all to the next macro.
macro_rules! rows_cache {
    ($next:ident $($more:ident)* ; $($before:tt)*) => { $next! { $($more)* ; $($before)*
/// Threads that accept connections; Strata accepts on every thread.
accept_threads: int = 1, "proxy.config.accept_threads", between(0, 4096), Restart, Global, Ignored;
/// Host names, besides 127.0.0.1, ::1 and localhost, that the admin server answers for, separated by blanks.
admin_hosts: optional = NULL, "proxy.config.admin.hosts", form(Syntax::Hosts), Reload, Global, Honoured;
/// Address and port of the admin server (metrics, health), or `off`.
admin_listen: text = "127.0.0.1:8083", "proxy.config.admin.listen", form(Syntax::Listen), Restart, Global, Honoured;
/// User to become after a start as root: a name, `#uid`, or `#-1` to stay root, with a warning.
admin_user_id: text = "nobody", "proxy.config.admin.user_id", ANY, Restart, Global, Honoured;
/// How event threads read disks: `io_uring`, by a ring of their own; `thread`, by a pool of threads; `auto`, the first where the system gives it. Writes go by threads always. ATS's native is taken for auto, with a warning.
aio_mode: text = "auto", "proxy.config.aio.mode", one_of(&["auto", "native", "thread", "io_uring"]), Restart, Global, Honoured;
/// Error page templates: 0 none, 1 the default directory, 2 per language, 3 per domain.
body_factory_enable_customizations: int = 0, "proxy.config.body_factory.enable_customizations", between(0, 3), Restart, Global, Ignored;
/// Bytes queued for a stripe beyond which a new write is refused; a body of several fragments waits for room, for 3 s in which the stripe takes nothing of it.
cache_agg_write_backlog: int = 5_242_880, "proxy.config.cache.agg_write_backlog", at_least(65_536), Reload, Global, Honoured;
/// Bytes up to which a resident alternate moves together with its vector.
cache_alt_rewrite_max_size: int = 4096, "proxy.config.cache.alt_rewrite_max_size", at_least(0), Reload, Global, Ignored;
/// File of the cache rules: lifetimes and exceptions by destination; another one is read at the next reload.
cache_control_filename: text = "cache.config", "proxy.config.cache.control.filename", ANY, Reload, Global, Honoured;
/// Milliseconds between the steps of a directory sync.
cache_dir_sync_delay: int = 500, "proxy.config.cache.dir.sync_delay", between(0, 60_000), Reload, Global, Ignored;
/// Seconds between two syncs of a directory.
cache_dir_sync_frequency: int = 60, "proxy.config.cache.dir.sync_frequency", between(1, 86_400), Reload, Global, Honoured;
/// Bytes a step of a directory sync writes.
cache_dir_sync_max_write: int = 2_097_152, "proxy.config.cache.dir.sync_max_write", at_least(65_536), Reload, Global, Ignored;
/// Stripes synced at the same time; -1 is one per disk.
cache_dir_sync_parallel_tasks: int = 1, "proxy.config.cache.dir.sync_parallel_tasks", between(-1, 1024), Restart, Global, Ignored;
/// Checksums over what is stored; in Strata they are always on.
cache_enable_checksum: int = 1, "proxy.config.cache.enable_checksum", FLAG, Reload, Global, Ignored;
/// Serving an object while it is being filled: 0 off, 1 on, 2 also to Range requests that miss.
cache_enable_read_while_writer: int = 1, "proxy.config.cache.enable_read_while_writer", between(0, 2), Reload, Global, Ignored;
/// Sector size in bytes to use instead of the device's own; 0 asks the device.
cache_force_sector_size: int = 0, "proxy.config.cache.force_sector_size", between(0, 1_048_576), Restart, Global, Honoured;
/// A hit that the write cursor reaches within this percentage of the stripe is written again.
cache_hit_evacuate_percent: int = 0, "proxy.config.cache.hit_evacuate_percent", between(0, 100), Reload, Global, Ignored;
/// Bytes up to which a hit is evacuated; 0 is any size.
cache_hit_evacuate_size_limit: int = 0, "proxy.config.cache.hit_evacuate_size_limit", at_least(0), Reload, Global, Ignored;
/// File that assigns hosts to volumes.
cache_hosting_filename: text = "hosting.config", "proxy.config.cache.hosting_filename", ANY, Reload, Global, Honoured;
/// Reads from the capacity tier before an object is copied to the fast tier.
cache_interim_migrate_threshold: int = 2, "proxy.config.cache.interim.migrate_threshold", between(0, 1_000_000), Reload, Global, Honoured;
/// Fast spans, separated by blanks, as ATS 4.2 names them; the same as lines of storage.config with `tier=fast`.
cache_interim_storage: optional = NULL, "proxy.config.cache.interim.storage", ANY, Restart, Global, Honoured;
/// File that says which client addresses may do what; another one is read at the next reload.
cache_ip_allow_filename: text = "ip_allow.yaml", "proxy.config.cache.ip_allow.filename", ANY, Reload, Global, Honoured;
/// Alternates kept for one URL; 0 is no limit, and above some 250 the oldest are not counted.
cache_limits_http_max_alts: int = 5, "proxy.config.cache.limits.http.max_alts", between(0, 1024), Reload, Global, Honoured;
/// 1 logs an alternate that is evicted because a URL has too many.
cache_log_alternate_eviction: int = 0, "proxy.config.cache.log.alternate.eviction", FLAG, Reload, Global, Ignored;
/// I/O errors at which a span goes offline.
cache_max_disk_errors: int = 5, "proxy.config.cache.max_disk_errors", between(1, 1_000_000), Reload, Global, Honoured;
/// Bytes above which an object is not stored; 0 is no limit.
cache_max_doc_size: int = 0, "proxy.config.cache.max_doc_size", at_least(0), Reload, Global, Honoured;
/// Bytes of a stripe for each entry of its directory; holds for stripes made from now on. 8000 stands for 32000 on spans of the capacity tier over 4 TiB.
cache_min_average_object_size: int = 8000, "proxy.config.cache.min_average_object_size", between(512, 1_073_741_824), Restart, Global, Honoured;
/// Milliseconds before a lock that was busy is tried again; Strata's cache never waits so.
cache_mutex_retry_delay: int = 2, "proxy.config.cache.mutex_retry_delay", between(0, 60_000), Reload, Global, Ignored;
/// 1 lets the cache rules pin objects, a tenth of each stripe at most; what is pinned stays so until its time is over.
cache_permit_pinning: int = 0, "proxy.config.cache.permit.pinning", FLAG, Reload, Global, Honoured;
/// 1 keeps a span that failed offline over a restart.
cache_persist_bad_disks: int = 0, "proxy.config.cache.persist_bad_disks", FLAG, Restart, Global, Ignored;
/// How RAM is kept: 0 CLFUS, 1 LRU, 2 S3-FIFO; Strata has S3-FIFO.
cache_ram_cache_algorithm: int = 2, "proxy.config.cache.ram_cache.algorithm", between(0, 2), Restart, Global, Ignored;
/// Compression in RAM: 0 none, 1 fastlz, 2 zlib, 3 lzma.
cache_ram_cache_compress: int = 0, "proxy.config.cache.ram_cache.compress", between(0, 3), Restart, Global, Ignored;
/// Keep the compressed form when it is at most this percentage of the plain one.
cache_ram_cache_compress_percent: int = 90, "proxy.config.cache.ram_cache.compress_percent", between(0, 100), Restart, Global, Ignored;
/// Bytes of RAM for hot objects, overhead included; -1 sizes it from the storage.
cache_ram_cache_size: int = -1, "proxy.config.cache.ram_cache.size", at_least(-1), Reload, Global, Honoured;
/// 1 lets an object into RAM only at its second read; 2 to 9 only once RAM is 50 %, 67 %, 75 %, … full (n - 1 of n parts).
cache_ram_cache_use_seen_filter: int = 0, "proxy.config.cache.ram_cache.use_seen_filter", between(0, 9), Restart, Global, Honoured;
/// Bytes of body from which an object never enters RAM; 0 is no limit.
cache_ram_cache_cutoff: int = 4_194_304, "proxy.config.cache.ram_cache_cutoff", at_least(0), Reload, Global, Honoured;
/// Attempts of a reader to join a writer; in Strata it is woken instead.
cache_read_while_writer_max_retries: int = 10, "proxy.config.cache.read_while_writer.max_retries", between(0, 1_000_000), Reload, Global, Ignored;
/// Milliseconds between such attempts.
cache_read_while_writer_retry_delay: int = 50, "proxy.config.cache.read_while_writer_retry.delay", between(0, 60_000), Reload, Global, Ignored;
/// 1 chooses among alternates by Vary.
cache_select_alternate: int = 1, "proxy.config.cache.select_alternate", FLAG, Reload, Global, Ignored;
/// 1 keeps the directory in shared memory over a restart.
cache_shm_enabled: int = 0, "proxy.config.cache.shm.enabled", FLAG, Restart, Global, Ignored;
/// Prefix of the names in shared memory.
cache_shm_name_prefix: text = "ats", "proxy.config.cache.shm.name_prefix", ANY, Restart, Global, Ignored;
/// 1 removes what an earlier run left in shared memory.
cache_shm_purge_stale_on_start: int = 0, "proxy.config.cache.shm.purge_stale_on_start", FLAG, Restart, Global, Ignored;
/// 1 uses huge pages for the shared memory.
cache_shm_use_hugepages: int = 0, "proxy.config.cache.shm.use_hugepages", FLAG, Restart, Global, Ignored;
/// Bytes of body in one fragment of the objects stored from now on; at most 1,835,008 are used.
cache_target_fragment_size: int = 1_048_576, "proxy.config.cache.target_fragment_size", between(65_536, 4_194_304), Restart, Global, Honoured;
/// Threads that read and write each span; with io_uring, what event threads do not read.
cache_threads_per_disk: int = 8, "proxy.config.cache.threads_per_disk", between(1, 256), Restart, Global, Honoured;
/// File that divides the storage into volumes.
cache_volume_filename: text = "volume.config", "proxy.config.cache.volume_filename", ANY, Restart, Global, Honoured;
    } };
}

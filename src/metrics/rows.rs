//! The rows: every counter and gauge of the program, sorted by name.

use super::table::metrics;

metrics! {
    /// 1 while the server accepts no more and waits for its transactions, else 0.
    Draining = "proxy.node.config.draining", Gauge;
    /// When the configuration was last loaded, in seconds since 1970.
    ReconfigureTime = "proxy.node.config.reconfigure_time", Gauge;
    /// 1 when a loaded record takes effect only at the next restart, else 0.
    RestartRequired = "proxy.node.config.restart_required.proxy", Gauge;
    /// When every stripe had been judged, in seconds since 1970; 0 until then.
    CacheReadyTime = "proxy.node.restarts.proxy.cache_ready_time", Gauge;
    /// When the server started, in seconds since 1970.
    StartTime = "proxy.node.restarts.proxy.start_time", Gauge;
    /// Bytes that the stripes can hold, over all spans.
    CacheBytesTotal = "proxy.process.cache.bytes_total", Gauge;
    /// Bytes of the stripes that hold written data.
    CacheBytesUsed = "proxy.process.cache.bytes_used", Gauge;
    /// Directory pages that are yet to be read after a start.
    CachePagesUnread = "proxy.process.cache.directory.pages_unread", Gauge;
    /// Directory entries of equal tag whose object proved to be another.
    CacheDirectoryCollision = "proxy.process.cache.directory_collision", Counter;
    /// Directory entries that the stripes have room for.
    CacheDirentriesTotal = "proxy.process.cache.direntries.total", Gauge;
    /// Directory entries that name a fragment of an object; counted every 10 seconds, or less often where that would take more than a hundredth of the time.
    CacheDirentriesUsed = "proxy.process.cache.direntries.used", Gauge;
    /// Cache reads answered from the capacity tier.
    CacheDiskReadSuccess = "proxy.process.cache.disk.read.success", Counter;
    /// Bytes written again because they had been read and the cursor was about to come.
    CacheEvacuatedBytes = "proxy.process.cache.gc_bytes_evacuated", Counter;
    /// Fragments written again because they had been read and the cursor was about to come.
    CacheEvacuatedFragments = "proxy.process.cache.gc_frags_evacuated", Counter;
    /// Fragments that had been read and were left to the cursor, since their share of what is written, or the write budget, was used up.
    CacheEvacuationsRefused = "proxy.process.cache.gc_frags_refused", Counter;
    /// Bytes that are pinned: kept however far the cursor goes.
    CachePinnedBytes = "proxy.process.cache.pinned_bytes", Gauge;
    /// Objects, and parts that were added to one, that were to be pinned and are stored without, since a tenth of their stripe is pinned.
    CachePinsRefused = "proxy.process.cache.pins_refused", Counter;
    /// Cache reads answered from the RAM cache.
    CacheRamReadSuccess = "proxy.process.cache.ram.read.success", Counter;
    /// Bytes the RAM cache holds, its overhead included.
    CacheRamCacheBytesUsed = "proxy.process.cache.ram_cache.bytes_used", Gauge;
    /// RAM cache lookups that found the object.
    CacheRamCacheHits = "proxy.process.cache.ram_cache.hits", Counter;
    /// RAM cache lookups that did not find the object.
    CacheRamCacheMisses = "proxy.process.cache.ram_cache.misses", Counter;
    /// Names of hot objects in the RAM cache that were written down last.
    CacheRamCacheSaved = "proxy.process.cache.ram_cache.saved", Gauge;
    /// Names of hot objects that a start has yet to read ahead into the RAM cache; 0 once it is warm.
    CacheRamCacheToWarm = "proxy.process.cache.ram_cache.to_warm", Gauge;
    /// Bytes the RAM cache may hold.
    CacheRamCacheTotalBytes = "proxy.process.cache.ram_cache.total_bytes", Gauge;
    /// Objects that were read ahead into the RAM cache after a start.
    CacheRamCacheWarmed = "proxy.process.cache.ram_cache.warmed", Counter;
    /// Bytes of their bodies.
    CacheRamCacheWarmedBytes = "proxy.process.cache.ram_cache.warmed_bytes", Counter;
    /// Cache reads that are going on now.
    CacheReadActive = "proxy.process.cache.read.active", Gauge;
    /// Cache reads refused because too many waited for the span.
    CacheReadBusy = "proxy.process.cache.read.busy", Counter;
    /// Cache reads that found no usable object.
    CacheReadFailure = "proxy.process.cache.read.failure", Counter;
    /// Cache reads whose bytes failed the checksum or were overtaken by the write cursor.
    CacheReadInvalid = "proxy.process.cache.read.invalid", Counter;
    /// Cache reads whose directory page was not read in time.
    CacheReadNotLoaded = "proxy.process.cache.read.not_loaded", Counter;
    /// Successful cache reads: the sum of the ram, ssd and disk reads.
    CacheReadSuccess = "proxy.process.cache.read.success", Counter;
    /// Cache reads that waited for a directory page which a start had not read yet.
    CacheReadWaited = "proxy.process.cache.read.waited", Counter;
    /// Removals of a key that the cache did not hold.
    CacheRemoveFailure = "proxy.process.cache.remove.failure", Counter;
    /// Removals of a key that the cache held.
    CacheRemoveSuccess = "proxy.process.cache.remove.success", Counter;
    /// Fragments and directory pages that were flushed once and are damaged now.
    CacheSpanErrorsChecksum = "proxy.process.cache.span.errors.checksum", Counter;
    /// Reads of a span that the device failed.
    CacheSpanErrorsRead = "proxy.process.cache.span.errors.read", Counter;
    /// Writes to a span that the device failed or left unanswered.
    CacheSpanErrorsWrite = "proxy.process.cache.span.errors.write", Counter;
    /// Spans in use that have failed an I/O since they were opened.
    CacheSpanFailing = "proxy.process.cache.span.failing", Gauge;
    /// Configured spans that are not in use.
    CacheSpanOffline = "proxy.process.cache.span.offline", Gauge;
    /// Spans in use.
    CacheSpanOnline = "proxy.process.cache.span.online", Gauge;
    /// Spans in use of which some was away, and is used after revalidation only.
    CacheSpanSuspect = "proxy.process.cache.span.suspect", Gauge;
    /// Cache reads answered from the fast tier.
    CacheSsdReadSuccess = "proxy.process.cache.ssd.read.success", Counter;
    /// Bytes written of directory pages, their tables and the redo ring.
    CacheSyncBytes = "proxy.process.cache.sync.bytes", Counter;
    /// Directory syncs that were completed.
    CacheSyncCount = "proxy.process.cache.sync.count", Counter;
    /// Nanoseconds spent in directory syncs.
    CacheSyncTime = "proxy.process.cache.sync.time", Counter;
    /// Refreshes of a stored head that were not kept.
    CacheUpdateFailure = "proxy.process.cache.update.failure", Counter;
    /// Refreshes of a stored head, as after a 304.
    CacheUpdateSuccess = "proxy.process.cache.update.success", Counter;
    /// Times a write cursor came round to the start of its stripe.
    CacheWrapCount = "proxy.process.cache.wrap_count", Counter;
    /// Cache writes that are going on now.
    CacheWriteActive = "proxy.process.cache.write.active", Gauge;
    /// Cache writes given up because the stripe had too much waiting to be written.
    CacheWriteBacklogFailure = "proxy.process.cache.write.backlog.failure", Counter;
    /// Cache writes that were given up.
    CacheWriteFailure = "proxy.process.cache.write.failure", Counter;
    /// Fragments that were lost since their batch could not be written, twice.
    CacheWriteLost = "proxy.process.cache.write.lost", Counter;
    /// Cache writes that were committed.
    CacheWriteSuccess = "proxy.process.cache.write.success", Counter;
    /// Bytes written to stripes.
    CacheWriteBytes = "proxy.process.cache.write_bytes_stat", Counter;
    /// DNS queries that gave no address.
    DnsLookupFailures = "proxy.process.dns.lookup_failures", Counter;
    /// DNS queries that gave an address.
    DnsLookupSuccesses = "proxy.process.dns.lookup_successes", Counter;
    /// DNS queries.
    DnsTotalLookups = "proxy.process.dns.total_dns_lookups", Counter;
    /// Name lookups answered from the table of known addresses.
    HostdbHits = "proxy.process.hostdb.total_hits", Counter;
    /// Name lookups.
    HostdbLookups = "proxy.process.hostdb.total_lookups", Counter;
    /// Responses with status 100 sent to clients.
    Responses100 = "proxy.process.http.100_responses", Counter;
    /// Responses with status 101 sent to clients.
    Responses101 = "proxy.process.http.101_responses", Counter;
    /// Responses with a status from 100 to 199 sent to clients.
    Responses1xx = "proxy.process.http.1xx_responses", Counter;
    /// Responses with status 200 sent to clients.
    Responses200 = "proxy.process.http.200_responses", Counter;
    /// Responses with status 201 sent to clients.
    Responses201 = "proxy.process.http.201_responses", Counter;
    /// Responses with status 202 sent to clients.
    Responses202 = "proxy.process.http.202_responses", Counter;
    /// Responses with status 203 sent to clients.
    Responses203 = "proxy.process.http.203_responses", Counter;
    /// Responses with status 204 sent to clients.
    Responses204 = "proxy.process.http.204_responses", Counter;
    /// Responses with status 205 sent to clients.
    Responses205 = "proxy.process.http.205_responses", Counter;
    /// Responses with status 206 sent to clients.
    Responses206 = "proxy.process.http.206_responses", Counter;
    /// Responses with a status from 200 to 299 sent to clients.
    Responses2xx = "proxy.process.http.2xx_responses", Counter;
    /// Responses with status 300 sent to clients.
    Responses300 = "proxy.process.http.300_responses", Counter;
    /// Responses with status 301 sent to clients.
    Responses301 = "proxy.process.http.301_responses", Counter;
    /// Responses with status 302 sent to clients.
    Responses302 = "proxy.process.http.302_responses", Counter;
    /// Responses with status 303 sent to clients.
    Responses303 = "proxy.process.http.303_responses", Counter;
    /// Responses with status 304 sent to clients.
    Responses304 = "proxy.process.http.304_responses", Counter;
    /// Responses with status 305 sent to clients.
    Responses305 = "proxy.process.http.305_responses", Counter;
    /// Responses with status 307 sent to clients.
    Responses307 = "proxy.process.http.307_responses", Counter;
    /// Responses with status 308 sent to clients.
    Responses308 = "proxy.process.http.308_responses", Counter;
    /// Responses with a status from 300 to 399 sent to clients.
    Responses3xx = "proxy.process.http.3xx_responses", Counter;
    /// Responses with status 400 sent to clients.
    Responses400 = "proxy.process.http.400_responses", Counter;
    /// Responses with status 401 sent to clients.
    Responses401 = "proxy.process.http.401_responses", Counter;
    /// Responses with status 402 sent to clients.
    Responses402 = "proxy.process.http.402_responses", Counter;
    /// Responses with status 403 sent to clients.
    Responses403 = "proxy.process.http.403_responses", Counter;
    /// Responses with status 404 sent to clients.
    Responses404 = "proxy.process.http.404_responses", Counter;
    /// Responses with status 405 sent to clients.
    Responses405 = "proxy.process.http.405_responses", Counter;
    /// Responses with status 406 sent to clients.
    Responses406 = "proxy.process.http.406_responses", Counter;
    /// Responses with status 407 sent to clients.
    Responses407 = "proxy.process.http.407_responses", Counter;
    /// Responses with status 408 sent to clients.
    Responses408 = "proxy.process.http.408_responses", Counter;
    /// Responses with status 409 sent to clients.
    Responses409 = "proxy.process.http.409_responses", Counter;
    /// Responses with status 410 sent to clients.
    Responses410 = "proxy.process.http.410_responses", Counter;
    /// Responses with status 411 sent to clients.
    Responses411 = "proxy.process.http.411_responses", Counter;
    /// Responses with status 412 sent to clients.
    Responses412 = "proxy.process.http.412_responses", Counter;
    /// Responses with status 413 sent to clients.
    Responses413 = "proxy.process.http.413_responses", Counter;
    /// Responses with status 414 sent to clients.
    Responses414 = "proxy.process.http.414_responses", Counter;
    /// Responses with status 415 sent to clients.
    Responses415 = "proxy.process.http.415_responses", Counter;
    /// Responses with status 416 sent to clients.
    Responses416 = "proxy.process.http.416_responses", Counter;
    /// Responses with status 417 sent to clients.
    Responses417 = "proxy.process.http.417_responses", Counter;
    /// Responses with status 421 sent to clients.
    Responses421 = "proxy.process.http.421_responses", Counter;
    /// Responses with status 422 sent to clients.
    Responses422 = "proxy.process.http.422_responses", Counter;
    /// Responses with status 425 sent to clients.
    Responses425 = "proxy.process.http.425_responses", Counter;
    /// Responses with status 429 sent to clients.
    Responses429 = "proxy.process.http.429_responses", Counter;
    /// Responses with status 431 sent to clients.
    Responses431 = "proxy.process.http.431_responses", Counter;
    /// Responses with a status from 400 to 499 sent to clients.
    Responses4xx = "proxy.process.http.4xx_responses", Counter;
    /// Responses with status 500 sent to clients.
    Responses500 = "proxy.process.http.500_responses", Counter;
    /// Responses with status 501 sent to clients.
    Responses501 = "proxy.process.http.501_responses", Counter;
    /// Responses with status 502 sent to clients.
    Responses502 = "proxy.process.http.502_responses", Counter;
    /// Responses with status 503 sent to clients.
    Responses503 = "proxy.process.http.503_responses", Counter;
    /// Responses with status 504 sent to clients.
    Responses504 = "proxy.process.http.504_responses", Counter;
    /// Responses with status 505 sent to clients.
    Responses505 = "proxy.process.http.505_responses", Counter;
    /// Responses with a status from 500 to 599 sent to clients.
    Responses5xx = "proxy.process.http.5xx_responses", Counter;
    /// Bytes of fills that went on without a client and were given up.
    BackgroundFillBytesAborted = "proxy.process.http.background_fill_bytes_aborted_stat", Counter;
    /// Bytes of fills that went on without a client and were completed.
    BackgroundFillBytesCompleted = "proxy.process.http.background_fill_bytes_completed_stat", Counter;
    /// Fills that go on now without a client.
    BackgroundFillCurrentCount = "proxy.process.http.background_fill_current_count", Gauge;
    /// Fills that went on after their client had left.
    BackgroundFillTotalCount = "proxy.process.http.background_fill_total_count", Counter;
    /// Objects taken out of the cache by a request.
    CacheDeletes = "proxy.process.http.cache_deletes", Counter;
    /// Requests answered by a stored response that was fresh, from whatever tier.
    CacheHitFresh = "proxy.process.http.cache_hit_fresh", Counter;
    /// Conditional requests answered 304 from a stored response.
    CacheHitIms = "proxy.process.http.cache_hit_ims", Counter;
    /// Requests answered by a fresh stored response in the RAM cache; counted in
    /// cache_hit_fresh too.
    CacheHitMemFresh = "proxy.process.http.cache_hit_mem_fresh", Counter;
    /// Requests answered by a stored response that the origin confirmed.
    CacheHitRevalidated = "proxy.process.http.cache_hit_revalidated", Counter;
    /// Requests answered by the fill of another request.
    CacheHitRww = "proxy.process.http.cache_hit_rww", Counter;
    /// Requests answered by a stale stored response.
    CacheHitStaleServed = "proxy.process.http.cache_hit_stale_served", Counter;
    /// Requests for which the cache was asked.
    CacheLookups = "proxy.process.http.cache_lookups", Counter;
    /// Requests whose stored response was stale and which the origin answered anew.
    CacheMissChanged = "proxy.process.http.cache_miss_changed", Counter;
    /// Requests sent to the origin because the client refused a stored response.
    CacheMissClientNoCache = "proxy.process.http.cache_miss_client_no_cache", Counter;
    /// Requests that the cache may not answer by their method or fields.
    CacheMissClientNotCacheable = "proxy.process.http.cache_miss_client_not_cacheable", Counter;
    /// Requests for which nothing usable was stored.
    CacheMissCold = "proxy.process.http.cache_miss_cold", Counter;
    /// Conditional requests for which nothing usable was stored.
    CacheMissIms = "proxy.process.http.cache_miss_ims", Counter;
    /// Requests sent to the origin because a stored response could not be read.
    CacheReadError = "proxy.process.http.cache_read_error", Counter;
    /// Stored responses that could not be read to their end.
    CacheReadErrors = "proxy.process.http.cache_read_errors", Counter;
    /// Stored heads that a 304 refreshed.
    CacheUpdates = "proxy.process.http.cache_updates", Counter;
    /// Storable responses that were not stored.
    CacheWriteErrors = "proxy.process.http.cache_write_errors", Counter;
    /// Responses given to the cache to be stored.
    CacheWrites = "proxy.process.http.cache_writes", Counter;
    /// CONNECT requests from clients.
    ConnectRequests = "proxy.process.http.connect_requests", Counter;
    /// Client connections with a request in work.
    CurrentActiveClientConnections = "proxy.process.http.current_active_client_connections", Gauge;
    /// Transactions that read from the cache or write to it now.
    CurrentCacheConnections = "proxy.process.http.current_cache_connections", Gauge;
    /// Client connections that are open now.
    CurrentClientConnections = "proxy.process.http.current_client_connections", Gauge;
    /// Client requests in work now.
    CurrentClientTransactions = "proxy.process.http.current_client_transactions", Gauge;
    /// Origin connections that are open now.
    CurrentServerConnections = "proxy.process.http.current_server_connections", Gauge;
    /// Origin requests in work now.
    CurrentServerTransactions = "proxy.process.http.current_server_transactions", Gauge;
    /// DELETE requests from clients.
    DeleteRequests = "proxy.process.http.delete_requests", Counter;
    /// Transactions that the client broke off.
    ErrClientAbort = "proxy.process.http.err_client_abort_count_stat", Counter;
    /// Transactions for which no origin could be reached.
    ErrConnectFail = "proxy.process.http.err_connect_fail_count_stat", Counter;
    /// Requests from clients with any other method.
    ExtensionMethodRequests = "proxy.process.http.extension_method_requests", Counter;
    /// GET requests from clients.
    GetRequests = "proxy.process.http.get_requests", Counter;
    /// HEAD requests from clients.
    HeadRequests = "proxy.process.http.head_requests", Counter;
    /// Requests refused because they had come through this proxy before.
    ProxyLoopDetected = "proxy.process.http.http_proxy_loop_detected", Counter;
    /// Requests from clients whose head was read.
    IncomingRequests = "proxy.process.http.incoming_requests", Counter;
    /// Responses from origins whose head was read.
    IncomingResponses = "proxy.process.http.incoming_responses", Counter;
    /// Requests refused as malformed.
    InvalidClientRequests = "proxy.process.http.invalid_client_requests", Counter;
    /// Requests that named no host.
    MissingHostHdr = "proxy.process.http.missing_host_hdr", Counter;
    /// OPTIONS requests from clients.
    OptionsRequests = "proxy.process.http.options_requests", Counter;
    /// Origin requests for which a connection was opened.
    OriginMakeNew = "proxy.process.http.origin.make_new", Counter;
    /// Origin requests sent on a connection that was open already.
    OriginReuse = "proxy.process.http.origin.reuse", Counter;
    /// Bytes of request content sent to origins.
    OriginRequestBodyBytes = "proxy.process.http.origin_server_request_document_total_size", Counter;
    /// Bytes of request heads sent to origins.
    OriginRequestHeadBytes = "proxy.process.http.origin_server_request_header_total_size", Counter;
    /// Bytes of response content received from origins.
    OriginResponseBodyBytes = "proxy.process.http.origin_server_response_document_total_size", Counter;
    /// Bytes of response heads received from origins.
    OriginResponseHeadBytes = "proxy.process.http.origin_server_response_header_total_size", Counter;
    /// Requests made for origins, also where none could be reached.
    OutgoingRequests = "proxy.process.http.outgoing_requests", Counter;
    /// Fragments of objects held in part that came from an origin.
    PartsFetched = "proxy.process.http.parts_fetched", Counter;
    /// Origin connections that are open and idle.
    PooledServerConnections = "proxy.process.http.pooled_server_connections", Gauge;
    /// POST requests from clients.
    PostRequests = "proxy.process.http.post_requests", Counter;
    /// PURGE requests from clients.
    PurgeRequests = "proxy.process.http.purge_requests", Counter;
    /// PUSH requests from clients.
    PushRequests = "proxy.process.http.push_requests", Counter;
    /// PUT requests from clients.
    PutRequests = "proxy.process.http.put_requests", Counter;
    /// Requests answered by the origin because the client refused a stored response.
    TcpClientRefresh = "proxy.process.http.tcp_client_refresh_count_stat", Counter;
    /// Requests answered by the origin because the stored response was stale and had no validator.
    TcpExpiredMiss = "proxy.process.http.tcp_expired_miss_count_stat", Counter;
    /// Requests answered by a fresh stored response.
    TcpHit = "proxy.process.http.tcp_hit_count_stat", Counter;
    /// Requests answered 304 by a stored response.
    TcpImsHit = "proxy.process.http.tcp_ims_hit_count_stat", Counter;
    /// Requests conditional and not answered by a stored response.
    TcpImsMiss = "proxy.process.http.tcp_ims_miss_count_stat", Counter;
    /// Requests answered by the origin.
    TcpMiss = "proxy.process.http.tcp_miss_count_stat", Counter;
    /// Requests answered by a stored response after the origin confirmed it.
    TcpRefreshHit = "proxy.process.http.tcp_refresh_hit_count_stat", Counter;
    /// Requests answered by the origin because the stored response had changed.
    TcpRefreshMiss = "proxy.process.http.tcp_refresh_miss_count_stat", Counter;
    /// Client connections that were accepted.
    TotalClientConnections = "proxy.process.http.total_client_connections", Counter;
    /// Client connections that were accepted over IPv4.
    TotalClientConnectionsIpv4 = "proxy.process.http.total_client_connections_ipv4", Counter;
    /// Client connections that were accepted over IPv6.
    TotalClientConnectionsIpv6 = "proxy.process.http.total_client_connections_ipv6", Counter;
    /// Connections that were accepted, of whatever protocol.
    TotalIncomingConnections = "proxy.process.http.total_incoming_connections", Counter;
    /// Origin connections that were opened.
    TotalServerConnections = "proxy.process.http.total_server_connections", Counter;
    /// Nanoseconds from the first byte of a request to the end of its transaction, summed.
    TotalTransactionsTime = "proxy.process.http.total_transactions_time", Counter;
    /// TRACE requests from clients.
    TraceRequests = "proxy.process.http.trace_requests", Counter;
    /// Transactions whose client went away, or stalled, before their end.
    TransactionErrorsAborts = "proxy.process.http.transaction_counts.errors.aborts", Counter;
    /// Transactions that ended without an origin connection.
    TransactionErrorsConnectFailed = "proxy.process.http.transaction_counts.errors.connect_failed", Counter;
    /// Connections closed by the client in the middle of a request head.
    TransactionErrorsEarlyHangups = "proxy.process.http.transaction_counts.errors.early_hangups", Counter;
    /// Connections that ended before any request.
    TransactionErrorsEmptyHangups = "proxy.process.http.transaction_counts.errors.empty_hangups", Counter;
    /// Transactions that ended in any other error.
    TransactionErrorsOther = "proxy.process.http.transaction_counts.errors.other", Counter;
    /// Connections closed by the client before they were accepted.
    TransactionErrorsPreAcceptHangups = "proxy.process.http.transaction_counts.errors.pre_accept_hangups", Counter;
    /// Transactions answered by a fresh stored response.
    TransactionHitFresh = "proxy.process.http.transaction_counts.hit_fresh", Counter;
    /// Transactions answered by a stored response that the origin confirmed.
    TransactionHitRevalidated = "proxy.process.http.transaction_counts.hit_revalidated", Counter;
    /// Transactions whose stored response the origin replaced.
    TransactionMissChanged = "proxy.process.http.transaction_counts.miss_changed", Counter;
    /// Transactions whose client refused a stored response.
    TransactionMissClientNoCache = "proxy.process.http.transaction_counts.miss_client_no_cache", Counter;
    /// Transactions for which nothing usable was stored.
    TransactionMissCold = "proxy.process.http.transaction_counts.miss_cold", Counter;
    /// Transactions that the cache may not answer.
    TransactionMissNotCacheable = "proxy.process.http.transaction_counts.miss_not_cacheable", Counter;
    /// Transactions of no other kind.
    TransactionOther = "proxy.process.http.transaction_counts.other.unclassified", Counter;
    /// CONNECT tunnels that were opened.
    Tunnels = "proxy.process.http.tunnels", Counter;
    /// Bytes of request content received from clients.
    ClientRequestBodyBytes = "proxy.process.http.user_agent_request_document_total_size", Counter;
    /// Bytes of request heads received from clients.
    ClientRequestHeadBytes = "proxy.process.http.user_agent_request_header_total_size", Counter;
    /// Bytes of response content sent to clients.
    ClientResponseBodyBytes = "proxy.process.http.user_agent_response_document_total_size", Counter;
    /// Bytes of response heads sent to clients.
    ClientResponseHeadBytes = "proxy.process.http.user_agent_response_header_total_size", Counter;
    /// HTTP/2 connections that were closed because of an error or of abuse: GOAWAY frames with an error code.
    Http2ConnectionErrors = "proxy.process.http2.connection_errors", Counter;
    /// HTTP/2 connections that are open.
    Http2CurrentConnections = "proxy.process.http2.current_client_connections", Gauge;
    /// HTTP/2 requests that are being carried out.
    Http2CurrentStreams = "proxy.process.http2.current_client_streams", Gauge;
    /// HTTP/2 connections to origins that are open.
    Http2OriginCurrentConnections = "proxy.process.http2.current_server_connections", Gauge;
    /// HTTP/2 connections closed because their WINDOW_UPDATE frames add next to nothing.
    Http2InsufficientWindowUpdate = "proxy.process.http2.insufficient_avg_window_update", Counter;
    /// HTTP/2 streams refused because the client had as many open as it may.
    Http2StreamsRefused = "proxy.process.http2.max_concurrent_streams_exceeded_in", Counter;
    /// HTTP/2 connections closed for too many CONTINUATION frames.
    Http2ContinuationExceeded = "proxy.process.http2.max_continuation_frames_per_minute_exceeded", Counter;
    /// HTTP/2 connections closed for too many DATA frames that hold nothing.
    Http2EmptyExceeded = "proxy.process.http2.max_empty_frames_per_minute_exceeded", Counter;
    /// HTTP/2 requests answered 431, and connections closed, because of too large fields.
    Http2HeaderListExceeded = "proxy.process.http2.max_header_list_size_exceeded", Counter;
    /// HTTP/2 connections closed for too many PING frames.
    Http2PingExceeded = "proxy.process.http2.max_ping_frames_per_minute_exceeded", Counter;
    /// HTTP/2 connections closed for too many PRIORITY frames.
    Http2PriorityExceeded = "proxy.process.http2.max_priority_frames_per_minute_exceeded", Counter;
    /// HTTP/2 connections closed for too many RST_STREAM frames.
    Http2RstStreamExceeded = "proxy.process.http2.max_rst_stream_frames_per_minute_exceeded", Counter;
    /// HTTP/2 connections closed for too many SETTINGS frames.
    Http2SettingsFramesExceeded = "proxy.process.http2.max_settings_frames_per_minute_exceeded", Counter;
    /// HTTP/2 connections closed for too many settings.
    Http2SettingsExceeded = "proxy.process.http2.max_settings_per_minute_exceeded", Counter;
    /// HTTP/2 connections that ended in order.
    Http2SessionsEos = "proxy.process.http2.session_die_eos", Counter;
    /// HTTP/2 connections that ended by an error or for abuse.
    Http2SessionsError = "proxy.process.http2.session_die_error", Counter;
    /// HTTP/2 connections closed because too many of their streams had to be reset for an error of the client's.
    Http2SessionsHighErrorRate = "proxy.process.http2.session_die_high_error_rate", Counter;
    /// HTTP/2 connections that ended because nothing passed for too long.
    Http2SessionsInactive = "proxy.process.http2.session_die_inactive", Counter;
    /// HTTP/2 streams that were reset because of an error: RST_STREAM frames sent, but for those that only say that no more is wanted.
    Http2StreamErrors = "proxy.process.http2.stream_errors", Counter;
    /// HTTP/2 connections since the start.
    Http2Connections = "proxy.process.http2.total_client_connections", Counter;
    /// HTTP/2 requests since the start.
    Http2Streams = "proxy.process.http2.total_client_streams", Counter;
    /// HTTP/2 connections to origins since the start.
    Http2OriginConnections = "proxy.process.http2.total_server_connections", Counter;
    /// Requests to origins over HTTP/2 since the start.
    Http2OriginStreams = "proxy.process.http2.total_server_streams", Counter;
    /// Access log lines dropped because the log could not keep up.
    LogEntriesFail = "proxy.process.log.event_log_access_fail", Counter;
    /// Access log lines written.
    LogEntriesOk = "proxy.process.log.event_log_access_ok", Counter;
    /// Listening sockets that are open.
    NetAcceptsOpen = "proxy.process.net.accepts_currently_open", Gauge;
    /// Connections that are open, to clients and origins.
    NetConnectionsOpen = "proxy.process.net.connections_currently_open", Gauge;
    /// Client connections refused because there were too many.
    NetConnectionsThrottledIn = "proxy.process.net.connections_throttled_in", Counter;
    /// Connections to `pp` ports that were closed: of no balancer, or without the PROXY protocol.
    NetIntroductionsRefused = "proxy.process.net.proxy_protocol_refused", Counter;
    /// Bytes read from client connections.
    NetReadBytes = "proxy.process.net.read_bytes", Counter;
    /// Bytes written to client connections.
    NetWriteBytes = "proxy.process.net.write_bytes", Counter;
    /// Certificates that clients may be given.
    SslCertificates = "proxy.process.ssl.certificates", Gauge;
    /// Certificates whose files can't be used now: served as they were before, or not at all.
    SslCertificatesFaulty = "proxy.process.ssl.certificates_faulty", Gauge;
    /// When the first of the certificates ends, in seconds since 1970; 0 without any.
    SslCertificatesExpiry = "proxy.process.ssl.certificates_first_expiry", Gauge;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherEcdsaAes128Gcm = "proxy.process.ssl.cipher.user_agent.ECDHE-ECDSA-AES128-GCM-SHA256", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherEcdsaAes256Gcm = "proxy.process.ssl.cipher.user_agent.ECDHE-ECDSA-AES256-GCM-SHA384", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherEcdsaChacha20 = "proxy.process.ssl.cipher.user_agent.ECDHE-ECDSA-CHACHA20-POLY1305", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherRsaAes128Gcm = "proxy.process.ssl.cipher.user_agent.ECDHE-RSA-AES128-GCM-SHA256", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherRsaAes256Gcm = "proxy.process.ssl.cipher.user_agent.ECDHE-RSA-AES256-GCM-SHA384", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.2).
    SslCipherRsaChacha20 = "proxy.process.ssl.cipher.user_agent.ECDHE-RSA-CHACHA20-POLY1305", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.3).
    SslCipherAes128Gcm = "proxy.process.ssl.cipher.user_agent.TLS_AES_128_GCM_SHA256", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.3).
    SslCipherAes256Gcm = "proxy.process.ssl.cipher.user_agent.TLS_AES_256_GCM_SHA384", Counter;
    /// Handshakes with clients that agreed on this cipher (TLS 1.3).
    SslCipherChacha20 = "proxy.process.ssl.cipher.user_agent.TLS_CHACHA20_POLY1305_SHA256", Counter;
    /// Handshakes with clients that exchanged keys by this group.
    SslGroupP256 = "proxy.process.ssl.group.user_agent.P-256", Counter;
    /// Handshakes with clients that exchanged keys by this group.
    SslGroupP384 = "proxy.process.ssl.group.user_agent.P-384", Counter;
    /// Handshakes with clients that exchanged keys by this group.
    SslGroupX25519 = "proxy.process.ssl.group.user_agent.X25519", Counter;
    /// Handshakes with clients that exchanged keys by this group.
    SslGroupX25519MlKem768 = "proxy.process.ssl.group.user_agent.X25519MLKEM768", Counter;
    /// Handshakes with origins that failed since their certificate did not hold.
    SslOriginCertVerifyFailed = "proxy.process.ssl.origin_server_cert_verify_failed", Counter;
    /// Handshakes with origins that failed since their certificate is out of date.
    SslOriginExpiredCert = "proxy.process.ssl.origin_server_expired_cert", Counter;
    /// Handshakes with origins that failed for another reason.
    SslOriginOtherErrors = "proxy.process.ssl.origin_server_other_errors", Counter;
    /// Handshakes with origins that failed since nobody known issued their certificate.
    SslOriginUnknownCa = "proxy.process.ssl.origin_server_unknown_ca", Counter;
    /// Handshakes with origins that failed for want of a version that both sides speak.
    SslOriginWrongVersion = "proxy.process.ssl.origin_server_wrong_version", Counter;
    /// Handshakes with origins that resumed a session.
    SslOriginSessionReused = "proxy.process.ssl.origin_session_reused", Counter;
    /// Handshakes with clients that ended with the connection.
    SslErrorSyscall = "proxy.process.ssl.ssl_error_syscall", Counter;
    /// Handshakes with clients that agreed on TLS 1.2.
    SslTotalTls12 = "proxy.process.ssl.ssl_total_tlsv12", Counter;
    /// Handshakes with clients that agreed on TLS 1.3.
    SslTotalTls13 = "proxy.process.ssl.ssl_total_tlsv13", Counter;
    /// Handshakes with clients that were begun.
    SslAttemptsIn = "proxy.process.ssl.total_attempts_handshake_count_in", Counter;
    /// Handshakes with origins that were begun.
    SslAttemptsOut = "proxy.process.ssl.total_attempts_handshake_count_out", Counter;
    /// Handshakes with clients that were done.
    SslSuccessIn = "proxy.process.ssl.total_success_handshake_count_in", Counter;
    /// Handshakes with origins that were done.
    SslSuccessOut = "proxy.process.ssl.total_success_handshake_count_out", Counter;
    /// Handshakes that failed for a certificate that is damaged.
    SslClientBadCert = "proxy.process.ssl.user_agent_bad_cert", Counter;
    /// Handshakes that failed since a client's certificate did not hold.
    SslClientCertVerifyFailed = "proxy.process.ssl.user_agent_cert_verify_failed", Counter;
    /// Handshakes that failed since a message could not be decrypted.
    SslClientDecryptionFailed = "proxy.process.ssl.user_agent_decryption_failed", Counter;
    /// Connections of clients that may not ask for their name (`ip_allow` in sni.toml).
    SslClientDenied = "proxy.process.ssl.user_agent_denied", Counter;
    /// Handshakes that failed for a certificate that is out of date.
    SslClientExpiredCert = "proxy.process.ssl.user_agent_expired_cert", Counter;
    /// Handshakes with clients that took longer than they may.
    SslHandshakeTimeouts = "proxy.process.ssl.user_agent_handshake_timeout", Counter;
    /// Handshakes with clients that failed for another reason.
    SslClientOtherErrors = "proxy.process.ssl.user_agent_other_errors", Counter;
    /// Handshakes that failed for a certificate that was revoked.
    SslClientRevokedCert = "proxy.process.ssl.user_agent_revoked_cert", Counter;
    /// Handshakes that resumed a session.
    SslSessionHit = "proxy.process.ssl.user_agent_session_hit", Counter;
    /// Handshakes that began a session.
    SslSessionMiss = "proxy.process.ssl.user_agent_session_miss", Counter;
    /// Handshakes that failed for a certificate of an unknown issuer.
    SslClientUnknownCa = "proxy.process.ssl.user_agent_unknown_ca", Counter;
    /// Handshakes that failed since a client did not like our certificate.
    SslClientUnknownCert = "proxy.process.ssl.user_agent_unknown_cert", Counter;
    /// Handshakes that failed for want of a version that both sides speak.
    SslClientWrongVersion = "proxy.process.ssl.user_agent_wrong_version", Counter;
    /// Bytes of the process that are resident in memory.
    MemoryRss = "proxy.process.traffic_server.memory.rss", Gauge;
    /// Connections that are passed on with their TLS (`tunnel_route` in sni.toml).
    TunnelsTlsCurrent = "proxy.process.tunnel.current_client_connections_tls_tunnel", Gauge;
    /// Connections that were passed on with their TLS.
    TunnelsTls = "proxy.process.tunnel.total_client_connections_tls_tunnel", Counter;
    /// Responses cut since the client took nothing of them for `transaction_no_activity_timeout_in`, as where it leaves its HTTP/2 window shut.
    ClientStalled = "strata.client.stalled", Counter;
    /// Number of the configuration in force; each reload or set adds one.
    StrataGeneration = "strata.config.generation", Gauge;
    /// Reloads refused because of an error, which changed nothing.
    StrataReloadFailures = "strata.config.reload_failures", Counter;
    /// Reloads that took effect.
    StrataReloads = "strata.config.reloads", Counter;
    /// Requests on the control socket that were answered by an error.
    StrataControlErrors = "strata.control.errors", Counter;
    /// Requests on the control socket.
    StrataControlRequests = "strata.control.requests", Counter;
    /// Bodies that a client got no further, since the rest was nowhere to be had.
    FillCut = "strata.fill.cut", Counter;
    /// Times that a follower of a fill read from the cache what it had missed.
    FillReadbacks = "strata.fill.readbacks", Counter;
    /// Bodies that broke off and went on by a Range request to the origin.
    FillResumed = "strata.fill.resumed", Counter;
    /// Requests that ended so: the proxy itself could not go on: draining, or out of a limit.
    OutcomeAnsweredInternal = "strata.outcome.answered_internal", Counter;
    /// Requests that ended so: the request was malformed, ambiguous, or too large.
    OutcomeAnsweredInvalid = "strata.outcome.answered_invalid", Counter;
    /// Requests that ended so: Via names this server already.
    OutcomeAnsweredLoop = "strata.outcome.answered_loop", Counter;
    /// Requests that ended so: no remap rule matched and one is required.
    OutcomeAnsweredNoRule = "strata.outcome.answered_no_rule", Counter;
    /// Requests that ended so: only-if-cached, and nothing fit to serve: 504 (RFC 9111 5.2.1.7).
    OutcomeAnsweredOnlyIfCached = "strata.outcome.answered_only_if_cached", Counter;
    /// Requests that ended so: TRACE or OPTIONS whose Max-Forwards ended here (RFC 9110 7.6.2).
    OutcomeAnsweredOptions = "strata.outcome.answered_options", Counter;
    /// Requests that ended so: PURGE was carried out, whether or not something was there.
    OutcomeAnsweredPurged = "strata.outcome.answered_purged", Counter;
    /// Requests that ended so: PUSH was carried out: the enclosed response was stored, or might not be.
    OutcomeAnsweredPushed = "strata.outcome.answered_pushed", Counter;
    /// Requests that ended so: a redirect rule answered.
    OutcomeAnsweredRedirect = "strata.outcome.answered_redirect", Counter;
    /// Requests that ended so: a method, version or expectation that is not served here.
    OutcomeAnsweredUnsupported = "strata.outcome.answered_unsupported", Counter;
    /// Requests that ended so: the client went away before its response was whole.
    OutcomeClientAbort = "strata.outcome.client_abort", Counter;
    /// Requests that ended so: the request's body broke off, stalled, or was malformed.
    OutcomeClientReadError = "strata.outcome.client_read_error", Counter;
    /// Requests that ended so: refused by a filter or by ip_allow.
    OutcomeDenied = "strata.outcome.denied", Counter;
    /// Requests that ended so: refused: forwarding is not allowed for this client or address.
    OutcomeDeniedForward = "strata.outcome.denied_forward", Counter;
    /// Requests that ended so: fresh in the capacity tier.
    OutcomeHitCapacity = "strata.outcome.hit_hdd", Counter;
    /// Requests that ended so: fresh in the cache, and the client's own copy is current: 304 (RFC 9110 13).
    OutcomeHitNotModified = "strata.outcome.hit_ims", Counter;
    /// Requests that ended so: fresh in the RAM cache.
    OutcomeHitRam = "strata.outcome.hit_ram", Counter;
    /// Requests that ended so: stale, and the origin said 304 (RFC 9111 4.3.3).
    OutcomeHitRevalidated = "strata.outcome.hit_revalidated", Counter;
    /// Requests that ended so: read while another request's fill was writing.
    OutcomeHitWhileWriting = "strata.outcome.hit_rww", Counter;
    /// Requests that ended so: fresh in the fast tier.
    OutcomeHitFast = "strata.outcome.hit_ssd", Counter;
    /// Requests that ended so: caching is off, or not ready yet.
    OutcomeMissCacheOff = "strata.outcome.miss_cache_off", Counter;
    /// Requests that ended so: stale, and the origin had another representation.
    OutcomeMissChanged = "strata.outcome.miss_changed", Counter;
    /// Requests that ended so: not in the cache; the response was fetched for it.
    OutcomeMissCold = "strata.outcome.miss_cold", Counter;
    /// Requests that ended so: stale without a validator, fetched again.
    OutcomeMissExpired = "strata.outcome.miss_expired", Counter;
    /// Requests that ended so: the method is not answered from a cache.
    OutcomeMissMethod = "strata.outcome.miss_method", Counter;
    /// Requests that ended so: the request demanded a fresh response (RFC 9111 5.2.1.4).
    OutcomeMissNoCache = "strata.outcome.miss_no_cache", Counter;
    /// Requests that ended so: the request forbade storing (RFC 9111 5.2.1.5).
    OutcomeMissNoStore = "strata.outcome.miss_no_store", Counter;
    /// Transactions that ended as: in the cache in part; what was missing was fetched for it.
    OutcomeMissPartial = "strata.outcome.miss_partial", Counter;
    /// Requests that ended so: a range of something not held, passed through.
    OutcomeMissRange = "strata.outcome.miss_range", Counter;
    /// Requests that ended so: in the cache, but it could not be read.
    OutcomeMissReadError = "strata.outcome.miss_read_error", Counter;
    /// Requests that ended so: the origin closed before its response was whole.
    OutcomeOriginClosed = "strata.outcome.origin_closed", Counter;
    /// Requests that ended so: no connection to the origin, or no slot for one.
    OutcomeOriginConnect = "strata.outcome.origin_connect", Counter;
    /// Requests that ended so: the origin's name has no address.
    OutcomeOriginDns = "strata.outcome.origin_dns", Counter;
    /// Requests that ended so: the origin's response breaks RFC 9112; nothing of it is trusted.
    OutcomeOriginMalformed = "strata.outcome.origin_malformed", Counter;
    /// Requests that ended so: the origin stalled before or in its response.
    OutcomeOriginTimeout = "strata.outcome.origin_timeout", Counter;
    /// Requests that ended so: stale, and the client's max-stale takes it (RFC 9111 5.2.1.2).
    OutcomeStaleAccepted = "strata.outcome.stale_accepted", Counter;
    /// Requests that ended so: stale, served because the origin answered with an error (RFC 5861 4).
    OutcomeStaleOriginError = "strata.outcome.stale_origin_error", Counter;
    /// Requests that ended so: stale, served because the origin could not be asked (RFC 9111 4.2.4).
    OutcomeStaleOriginFailed = "strata.outcome.stale_origin_failed", Counter;
    /// Requests that ended so: stale, served while a revalidation runs (RFC 5861 3).
    OutcomeStaleWhileRevalidate = "strata.outcome.stale_while_revalidate", Counter;
    /// Requests that ended so: a CONNECT or Upgrade tunnel was opened.
    OutcomeTunnel = "strata.outcome.tunnel", Counter;
    /// Requests that ended so: the request had Authorization and nothing allows storing (RFC 9111 3.5).
    OutcomeUncacheableAuthorization = "strata.outcome.uncacheable_authorization", Counter;
    /// Requests that ended so: Set-Cookie or Cookie, and the policy refuses these.
    OutcomeUncacheableCookie = "strata.outcome.uncacheable_cookie", Counter;
    /// Requests that ended so: neither a lifetime nor a validator: nothing to reuse it by.
    OutcomeUncacheableLifetime = "strata.outcome.uncacheable_lifetime", Counter;
    /// Requests that ended so: the response said no-store (RFC 9111 5.2.2.5).
    OutcomeUncacheableNoStore = "strata.outcome.uncacheable_no_store", Counter;
    /// Requests that ended so: not stored for a reason of policy, of size, or of the cache itself.
    OutcomeUncacheableOther = "strata.outcome.uncacheable_other", Counter;
    /// Requests that ended so: the response said private (RFC 9111 5.2.2.7).
    OutcomeUncacheablePrivate = "strata.outcome.uncacheable_private", Counter;
    /// Requests that ended so: known to be uncacheable from a response a while ago (hit-for-miss).
    OutcomeUncacheableRemembered = "strata.outcome.uncacheable_remembered", Counter;
    /// Requests that ended so: the status may not be stored, or not without explicit freshness.
    OutcomeUncacheableStatus = "strata.outcome.uncacheable_status", Counter;
    /// Requests that ended so: `Vary: *` matches no other request (RFC 9110 12.5.5).
    OutcomeUncacheableVary = "strata.outcome.uncacheable_vary", Counter;
    /// When the first of our certificates for origins ends, in seconds since 1970; 0 without any.
    SslOriginCertificatesExpiry = "strata.ssl.origin_certificates_first_expiry", Gauge;
    /// Connections over TLS with origins that are not proven, and used all the same (`ssl.client.verify.server.policy` PERMISSIVE).
    SslOriginUnproven = "strata.ssl.origin_unproven", Counter;
    /// Handshakes with clients that failed since no certificate is for the name they asked for.
    SslClientUnknownName = "strata.ssl.user_agent_unknown_name", Counter;
    /// Handshakes with clients that named no server, and were done.
    SslClientUnnamed = "strata.ssl.user_agent_unnamed", Counter;
    /// Bytes of the objects (head and body) that cache reads found in the capacity tier.
    TierCapacityBytes = "strata.tier.capacity.bytes", Counter;
    /// Objects that only the fast tier held, copied to the capacity tier before the fast
    /// cursor came to them.
    TierDemotions = "strata.tier.demotions", Counter;
    /// Bytes that may be written to the fast span with the least left of its write budget;
    /// 0 without a budget.
    TierFastBudgetLeft = "strata.tier.fast.budget_left", Gauge;
    /// Bytes of the objects (head and body) that cache reads found in the fast tier.
    TierFastBytes = "strata.tier.fast.bytes", Counter;
    /// Days of use until the busiest fast span has written the endurance that the operator gave,
    /// at the pace of its life so far, which is remembered over restarts; 0 while nothing is known.
    TierFastEnduranceDays = "strata.tier.fast.endurance_days", Gauge;
    /// Bytes written to the fast tier to keep what was read before the cursor came to it.
    TierFastWrittenEvacuation = "strata.tier.fast.written.evacuation", Counter;
    /// Bytes written to the fast tier because objects were stored there.
    TierFastWrittenFill = "strata.tier.fast.written.fill", Counter;
    /// Bytes written to the fast tier beside its objects: batch headers, rows, padding.
    TierFastWrittenLog = "strata.tier.fast.written.log", Counter;
    /// Bytes written to the fast tier because objects were copied there from the capacity tier.
    TierFastWrittenPromotion = "strata.tier.fast.written.promotion", Counter;
    /// Bytes written to the fast tier because heads were refreshed there, as after a 304.
    TierFastWrittenRefresh = "strata.tier.fast.written.refresh", Counter;
    /// Bytes written to the fast tier to keep its directories: pages, rings, stripe headers.
    TierFastWrittenSync = "strata.tier.fast.written.sync", Counter;
    /// Objects copied from the capacity tier to the fast tier.
    TierPromotions = "strata.tier.promotions", Counter;
    /// Bytes of the objects (head and body) that cache reads found in the RAM cache.
    TierRamBytes = "strata.tier.ram.bytes", Counter;
    /// Copies to the fast tier left out because its write budget was used up.
    TierRefusedBudget = "strata.tier.refused.budget", Counter;
    /// Copies between tiers left out because too many waited, or too much to be written.
    TierRefusedBusy = "strata.tier.refused.busy", Counter;
    /// Copies between tiers left out because the copy at hand was gone by then, or bad.
    TierRefusedGone = "strata.tier.refused.gone", Counter;
}

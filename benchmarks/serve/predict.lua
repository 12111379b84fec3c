-- wrk: POST /v1/predict with one text per request, in turn from a file of bodies (BODIES).
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
local thread = 0
function setup(t) t:set("start", thread * 997); thread = thread + 1 end
local at = 0
function request()
  at = at + 1
  local body = bodies[(start + at) % #bodies + 1]
  return wrk.format("POST", "/v1/predict", {["Content-Type"] = "application/json"}, body)
end
local statuses = {}
function response(status) if status ~= 200 then statuses[status] = (statuses[status] or 0) + 1 end end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'JSON {"requests": %d, "seconds": %.3f, "rate": %.1f, "p50_ms": %.2f, "p99_ms": %.2f, "max_ms": %.2f, "failed": %d}\n',
    summary.requests, summary.duration / 1e6, summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end

#include <sotto/observe/telemetry_settings.h>

namespace sotto {

SettingGroup telemetry_settings(TelemetryOptions& o) {
  return {"While it runs (docs/observability.md)",
          {{"metrics", &o.metrics, "[HOST:]PORT",
            "Serve /metrics for Prometheus on this host, from node 0"},
           {"log-json", &o.log_json, "FILE", "Write a line of JSON for each evaluation or report"},
           {"tensorboard", &o.tensorboard, "DIR", "Write scalars for TensorBoard"},
           {"trace", &o.trace, "FILE.json",
            "Write the phases of all nodes for Perfetto (ui.perfetto.dev); of a launched job each "
            "node writes FILE.node-RANK.json"}}};
}

}  // namespace sotto

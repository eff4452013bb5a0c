#include <sotto/observe/telemetry.h>

#include <unistd.h>

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/write_all.h>
#include <sotto/observe/json_lines.h>
#include <sotto/observe/phase_trace.h>
#include <sotto/observe/run_metrics.h>
#include <sotto/observe/tensorboard.h>
#include <sotto/trainers/launch/launcher.h>

namespace sotto {
namespace {

/// Has this node tell node 0 how it stands.
class Reporting final : public Observer {
 public:
  bool wants_health() const override { return true; }
};

/// "trace.json" → "trace.node-3.json" of a launched job: its nodes may share the folder, but hardly
/// a clock.
std::string trace_path(const std::string& path, std::optional<Rank> rank) {
  std::error_code unknown;
  if (!rank || std::filesystem::is_character_file(path, unknown)) {
    return path;
  }
  const std::filesystem::path name(path);
  return (name.parent_path() /
          fmt::format("{}.node-{}{}", name.stem().string(), *rank, name.extension().string()))
      .string();
}

MonitorAddress metrics_address(const std::string& text) {
  try {
    return parse_monitor_address(text);
  } catch (const Error& error) {
    throw error.about("metrics");
  }
}

/// None: this process has all nodes.
std::optional<Rank> rank_of(const TelemetryOptions& options) {
  if (options.rank || options.whole_job) {
    return options.rank;
  }
  const auto launched = read_launcher();
  return launched && launched->nodes > 1 ? std::optional(launched->rank) : std::nullopt;
}

}  // namespace

template <typename T, typename... Arguments>
void Telemetry::make(Arguments&&... arguments) {
  made_.push_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
  add(made_.back().get());
}

Telemetry::Telemetry(TelemetryOptions options)
    : options_(std::move(options)), rank_(rank_of(options_)) {
  if (!options_.trace.empty()) {
    make_trace();
  }
  if (rank_.value_or(0) == 0) {
    make_pages();
  } else if (!options_.metrics.empty() || !options_.log_json.empty() ||
             !options_.tensorboard.empty()) {
    make<Reporting>();
  }
}

void Telemetry::make_trace() {
  const std::string path = trace_path(options_.trace, rank_);
  make<PhaseTrace>(path, options_.config, rank_.value_or(0),
                   list(fmt::format("trace: {}{}", path,
                                    path == options_.trace ? "" : ", and one of each other node")));
}

void Telemetry::make_pages() {
  if (!options_.metrics.empty()) {
    make<RunMetrics>(metrics_address(options_.metrics));
  }
  if (!options_.log_json.empty()) {
    make<JsonLines>(options_.log_json, options_.keep, options_.config,
                    list("log: " + options_.log_json));
  }
  if (!options_.tensorboard.empty()) {
    make<TensorBoard>(options_.tensorboard, list("tensorboard: " + options_.tensorboard));
  }
  if (!options_.mllog.empty()) {
    make<Mllog>(options_.mllog, options_.keep, options_.mllog_settings,
                list("mllog: " + options_.mllog));
  }
}

Tell Telemetry::list(std::string line) {
  Output& output = outputs_.emplace_back();
  output.line = std::move(line);
  return [this, &output](const SettingText& message) {
    const std::string text =
        options_.spelling != nullptr ? message.text(*options_.spelling) : message.text();
    output.lost = true;
    warning(text);
    if (options_.warn) {
      return options_.warn(text);
    }
    // Standard error may be what has no room.
    (void)write_all(STDERR_FILENO, fmt::format("sotto: warning: {}\n", text));
  };
}

std::vector<std::string> Telemetry::outputs() const {
  std::vector<std::string> lines;
  for (const Output& output : outputs_) {
    lines.push_back(output.line + (output.lost ? " (in part: a write failed)" : ""));
  }
  return lines;
}

}  // namespace sotto

// One observer for all outputs of a training program's figures: a page for Prometheus, files for
// TensorBoard and for scripts, MLPerf's lines and a trace (docs/observability.md).
//
//   sotto::Telemetry telemetry({.metrics = "9464", .tensorboard = "board"});
//   sotto::OptimizerOptions options{.compressor = "quant:8", .observer = &telemetry};
//
// Give all nodes of a job equal options. Node 0 serves and writes the figures that all nodes report
// to it; each node writes a trace of its own, as their clocks differ.
//
// Thread safety and ownership: as an observer.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/observe/mllog.h>
#include <sotto/observe/tell.h>
#include <sotto/trainers/observer.h>

namespace sotto {

/// The outputs of a Telemetry; an empty field leaves that output out.
struct TelemetryOptions {
  std::string metrics{};      ///< [HOST:]PORT of /metrics, on this host
  std::string log_json{};     ///< a file for lines of JSON; "-": standard output
  std::string tensorboard{};  ///< a folder for scalars
  std::string mllog{};        ///< a file for MLPerf's lines
  std::string trace{};  ///< FILE.json for phases; in a launched job node 3 writes FILE.node-3.json
  /// Keep the lines that log_json and mllog have, as a run that goes on does.
  bool keep = false;
  /// All settings as a JSON object, for log_json and trace; empty: none.
  std::string config{};
  MllogSettings mllog_settings{};
  /// This node, where it is a process of its own; unset: the one that a launcher says (launcher.h).
  std::optional<Rank> rank{};
  /// All nodes are here, as threads or as processes of this one's, whatever a launcher says.
  bool whole_job = false;
  /// Receives a line when an output can no longer be written; null: standard error. The other
  /// outputs record it too.
  std::function<void(const std::string&)> warn{};
  /// How warnings name these settings; must outlive the object. Null: by their own names.
  const Spelling* spelling = nullptr;
};

class Telemetry final : public Observers {
 public:
  /// Opens the files; the page is served from when the run begins. Throws Error for what cannot be
  /// written, for an address that is not on this host, and for a launcher's variables that
  /// contradict each other.
  explicit Telemetry(TelemetryOptions options);

  /// The outputs written, as "trace: FILE"; an incomplete one is marked.
  std::vector<std::string> outputs() const;

 private:
  struct Output {
    std::string line;
    std::atomic<bool> lost = false;  ///< a write failed
  };
  /// Lists an output; returns the callback through which the output reports its failure.
  Tell list(std::string line);
  template <typename T, typename... Arguments>
  void make(Arguments&&... arguments);
  void make_trace();
  /// Makes the outputs that only node 0 has.
  void make_pages();

  const TelemetryOptions options_;
  const std::optional<Rank> rank_;
  std::vector<std::unique_ptr<Observer>> made_;
  std::list<Output> outputs_;
};

}  // namespace sotto

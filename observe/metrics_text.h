// Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4): one
// metric after the other, each with its help and type before its samples. One thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace sotto {

class MetricsText {
 public:
  /// All names begin with `prefix`.
  explicit MetricsText(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Begins a metric; `type` is gauge or counter.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  /// A sample of it; `labels` are metric_label's, with commas between them.
  void sample(double value, std::string_view labels = {});
  /// A metric with one sample.
  void one(std::string_view name, std::string_view type, std::string_view help, double value);

  std::string take() && { return std::move(text_); }

 private:
  std::string prefix_;
  std::string name_;
  std::string text_;
};

/// NAME="VALUE", whatever bytes the value has: what cannot be shown is written out as by
/// `printable`, and what the format takes for its own is escaped.
std::string metric_label(std::string_view name, std::string_view value);

}  // namespace sotto

#include <sotto/observe/metrics_text.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/text.h>

namespace sotto {

void MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = fmt::format("{}{}", prefix_, name);
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
}

void MetricsText::sample(double value, std::string_view labels) {
  const std::string number = std::isnan(value)   ? "NaN"
                             : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                                                 : fmt::format("{}", value);
  text_ += labels.empty() ? fmt::format("{} {}\n", name_, number)
                          : fmt::format("{}{{{}}} {}\n", name_, labels, number);
}

void MetricsText::one(std::string_view name, std::string_view type, std::string_view help,
                      double value) {
  begin(name, type, help);
  sample(value);
}

std::string metric_label(std::string_view name, std::string_view value) {
  std::string text = fmt::format("{}=\"", name);
  for (const char c : printable(value)) {
    if (c == '\\' || c == '"') {
      text += '\\';
    }
    text += c == '\n' ? ' ' : c;
  }
  return text + '"';
}

}  // namespace sotto

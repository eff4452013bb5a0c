#include <sotto/study/measure/measured_scenario.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/text.h>

namespace sotto::study {
namespace {

std::string exact_rate_text(double bytes_per_s) {
  return fmt::format("{:.0f} B/s", std::max(bytes_per_s, 1.0));
}

std::string link_text(double bytes_per_s, double latency_s) {
  return fmt::format("{{ bandwidth = \"{}\", latency = \"{} ns\" }}", exact_rate_text(bytes_per_s),
                     std::llround(1e9 * latency_s));
}

template <typename Value>
double median(const std::vector<MeasuredEdge>& edges, const Value& value) {
  std::vector<double> values;
  values.reserve(edges.size());
  for (const MeasuredEdge& edge : edges) {
    values.push_back(value(edge));
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string scenario_text(const MeasuredNetwork& network, std::string_view transport,
                          std::string_view gradient) {
  std::string text = fmt::format(
      "# Measured by `sotto bench exchange`. Put in the task, a [target], and how long a gradient\n"
      "# takes: time.compute_s of `sotto train --json`, divided by its rounds.\n"
      "sotto-scenario = 1\n"
      "title = {1}\n"
      "run = [\"allreduce\", \"dpsgd ring\", \"dcd quant:8 ring\", \"choco sign ring\"]\n\n"
      "[nodes]\ncount = {0}\ngradient = {2}\n\n"
      "[network]\n",
      network.hosts.size(),
      toml_text(fmt::format("{} nodes, measured over {}", network.hosts.size(), transport)),
      toml_text(gradient));
  if (transport == "gloo" || transport == "zmq") {
    text += fmt::format("transport = \"{}\"\n", transport);
  }
  const double rate = median(network.edges, [](auto& edge) { return edge.bandwidth_bytes_per_s; });
  const double latency = median(network.edges, [](auto& edge) { return edge.latency_s; });
  text += fmt::format("link = {}\nhosts = [\n", link_text(rate, latency));
  for (std::size_t node = 0; node < network.hosts.size(); ++node) {
    const MeasuredHost& host = network.hosts[node];
    if (host.up_bytes_per_s <= 0 && host.down_bytes_per_s <= 0) {
      continue;  // it has no edge that was measured
    }
    text += fmt::format("  {{ nodes = \"{}\"", node);
    if (host.up_bytes_per_s > 0) {
      text += fmt::format(", up = \"{}\"", exact_rate_text(host.up_bytes_per_s));
    }
    if (host.down_bytes_per_s > 0) {
      text += fmt::format(", down = \"{}\"", exact_rate_text(host.down_bytes_per_s));
    }
    text += " },\n";
  }
  text += "]\nbetween = [\n";
  for (const MeasuredEdge& edge : network.edges) {
    text += fmt::format("  {{ from = \"{}\", to = \"{}\", one-way = true, link = {} }},\n",
                        edge.from, edge.to, link_text(edge.bandwidth_bytes_per_s, edge.latency_s));
  }
  return text + "]\n";
}

}  // namespace sotto::study

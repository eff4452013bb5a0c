// Traces of links: where a scenario names one, and what links are like on average.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/scenario/internal/link_trace_file.h>
#include <sotto/study/scenario/internal/traces.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// The link with the mean of its trace in place of that.
constexpr SimTime kMillisecond = 1'000'000;

void flatten(LinkSpec& link) {
  if (link.trace != nullptr) {
    const LinkTrace& trace = *link.trace->trace;
    link.bytes_per_s = std::min(link.bytes_per_s, link.trace->times * mean_bandwidth(trace));
    link.latency = plus(link.latency, mean_latency(trace));
    link.trace = nullptr;
  }
}

void flatten(double& bytes_per_s, std::shared_ptr<const TracedLink>& traced) {
  if (traced != nullptr) {
    bytes_per_s = std::min(bytes_per_s, traced->times * mean_bandwidth(*traced->trace));
    traced = nullptr;
  }
}

}  // namespace

std::shared_ptr<const TracedLink> WrittenTrace::of(std::size_t place) const {
  return std::make_shared<const TracedLink>(
      TracedLink{.trace = trace, .start = plus(start, multiple(place, stagger))});
}

std::optional<WrittenTrace> read_trace(TomlReader& in, std::string_view key) {
  if (!in.has(key)) {
    return std::nullopt;
  }
  WrittenTrace written;
  LinkTraceFile file;
  if (in.holds_text(key)) {
    file.path = in.beside(*in.text(key));
  } else {
    TomlReader details = *in.table(key);
    details.require("file", "the file of a trace (docs/traces.md)");
    file.path = in.beside(*details.text("file"));
    file.repeat = details.parsed("repeat", parse_duration);
    file.bin = details.parsed("bin", parse_duration);
    if (file.bin && (*file.bin <= 0 || *file.bin % kMillisecond != 0)) {
      details.refuse("bin", "it is a whole number of milliseconds, 1 at least: \"100 ms\"");
    }
    written.start = details.parsed("start", parse_duration).value_or(0);
    written.stagger = details.parsed("stagger", parse_duration).value_or(0);
    details.finish();
  }
  in.at(key, [&] { written.trace = std::make_shared<const LinkTrace>(read_link_trace(file)); });
  return written;
}

bool Scenario::has_traces() const {
  const auto traced = [](const auto& one) { return one.link.trace != nullptr; };
  return link.trace != nullptr || std::ranges::any_of(between, traced) ||
         std::ranges::any_of(trunks, traced) ||
         std::ranges::any_of(hosts,
                             [](const HostSpec& host) { return host.up_trace || host.down_trace; });
}

Scenario without_traces(const Scenario& scenario) {
  Scenario flat = scenario;
  flatten(flat.link);
  for (LinksBetween& links : flat.between) {
    flatten(links.link);
  }
  for (Trunk& trunk : flat.trunks) {
    flatten(trunk.link);
  }
  for (HostSpec& host : flat.hosts) {
    flatten(host.up_bytes_per_s, host.up_trace);
    flatten(host.down_bytes_per_s, host.down_trace);
  }
  return flat;
}

}  // namespace sotto::study

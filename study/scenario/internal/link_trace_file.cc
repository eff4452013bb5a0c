#include <sotto/study/scenario/internal/link_trace_file.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/sim/network/platform.h>
#include <sotto/study/scenario/internal/line_file.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr double kPacketBytes = 1500;
constexpr SimTime kMs = 1'000'000;
constexpr SimTime kUsualBin = 100 * kMs;
constexpr std::uint64_t kMostMs = std::uint64_t{366} * 24 * 3600 * 1000;
constexpr double kMostBytesPerS = 1e15;
constexpr const char* kTraceHolds =
    "a trace has a whole number of milliseconds in each line (Mahimahi), or the first line "
    "time s,rate Mbit/s (CSV)";

void add_step(LinkTrace& trace, SimTime at, double bytes_per_s) {
  if (trace.bytes_per_s.empty() || trace.bytes_per_s.back() != bytes_per_s) {
    trace.steps.at.push_back(at);
    trace.bytes_per_s.push_back(bytes_per_s);
  }
}

/// Each line names a millisecond, by the end of which one more packet has passed; after the last,
/// the trace begins anew. Packets are counted over bins, of which the last one may be shorter.
LinkTrace read_mahimahi(LineFile& lines, const LinkTraceFile& file) {
  std::vector<std::uint64_t> packets;
  const auto bin_ms =
      static_cast<std::uint64_t>(std::max<SimTime>(1, file.bin.value_or(kUsualBin) / kMs));
  std::uint64_t last = 0;
  do {
    const auto ms = parse_number<std::uint64_t>(trimmed(lines.line()), 0, kMostMs);
    if (!ms) {
      lines.refuse(
          fmt::format("'{}' is no number of milliseconds: a whole number, of a year at "
                      "most",
                      printable(excerpt(lines.line()))));
    }
    if (*ms < last) {
      lines.refuse(fmt::format("{} ms is earlier than the line before, {} ms", *ms, last));
    }
    last = *ms;
    const std::uint64_t bin = (std::max<std::uint64_t>(last, 1) - 1) / bin_ms;
    if (bin >= LineFile::kMostLines) {
      lines.refuse(
          fmt::format("it has more than {} bins by then; give a larger bin", LineFile::kMostLines));
    }
    packets.resize(bin + 1);
    ++packets[bin];
  } while (lines.next());
  if (last == 0) {
    lines.refuse("the last line must be later than 0 ms: after it, the trace begins anew");
  }
  LinkTrace trace;
  for (std::size_t bin = 0; bin < packets.size(); ++bin) {
    const std::uint64_t from = bin * bin_ms;
    const std::uint64_t length = std::min(bin_ms, last - from);
    add_step(trace, static_cast<SimTime>(from) * kMs,
             1000 * kPacketBytes * static_cast<double>(packets[bin]) / static_cast<double>(length));
  }
  trace.steps.period = static_cast<SimTime>(last) * kMs;
  return trace;
}

/// Units of the columns, in nanoseconds, bytes a second and nanoseconds.
struct Columns {
  double time = 0;
  double rate = 0;
  double latency = 0;  ///< 0: there is no such column
};

/// "time s,rate Mbit/s,latency ms"
Columns read_header(const LineFile& lines) {
  const auto fields = lines.fields();
  Columns columns;
  const auto unit = [&](std::size_t index, std::string_view name, const auto& parse) -> double {
    const std::string_view field = fields[index];
    if (!field.starts_with(name) || field.size() <= name.size()) {
      lines.refuse(fmt::format("'{}' is not {} and its unit; {}", printable(excerpt(field)),
                               trimmed(name), kTraceHolds));
    }
    try {
      return static_cast<double>(parse(fmt::format("1 {}", field.substr(name.size()))));
    } catch (const Error& error) {
      lines.refuse(error.what());
    }
  };
  if (fields.size() < 2 || fields.size() > 3) {
    lines.refuse(fmt::format("it is no first line of a trace: {}, and latency ms if it has that",
                             kTraceHolds));
  }
  columns.time = unit(0, "time ", parse_duration);
  columns.rate = unit(1, "rate ", parse_bandwidth);
  if (fields.size() == 3) {
    columns.latency = unit(2, "latency ", parse_duration);
  }
  return columns;
}

void read_row(const LineFile& lines, const Columns& columns, double& first, LinkTrace& trace) {
  const auto fields = lines.fields();
  const std::size_t expected = columns.latency > 0 ? 3 : 2;
  if (fields.size() != expected) {
    lines.refuse(fmt::format("it has {} fields, and the first line {}", fields.size(), expected));
  }
  const double time = columns.time * lines.number(fields[0], "time");
  first = trace.steps.at.empty() ? time : first;
  const double since = std::round(time - first);
  if (since >= static_cast<double>(kMostMs) * static_cast<double>(kMs)) {
    lines.refuse("it is more than a year after the first line");
  }
  if (!trace.steps.at.empty() && since <= static_cast<double>(trace.steps.at.back())) {
    lines.refuse("its time is no later than that of the line before");
  }
  const double rate = columns.rate * lines.number(fields[1], "rate");
  if (rate > kMostBytesPerS) {
    lines.refuse(fmt::format("{} is more than a link carries", rate_text(rate)));
  }
  trace.steps.at.push_back(static_cast<SimTime>(since));
  trace.bytes_per_s.push_back(rate);
  if (columns.latency > 0) {
    const double latency = std::round(columns.latency * lines.number(fields[2], "latency"));
    if (latency > static_cast<double>(kMostLatency)) {
      lines.refuse("its latency is longer than 11 days");
    }
    trace.latency.push_back(static_cast<SimTime>(latency));
  }
}

LinkTrace read_csv(LineFile& lines, const LinkTraceFile& file) {
  const Columns columns = read_header(lines);
  LinkTrace trace;
  double first = 0;
  while (lines.next()) {
    read_row(lines, columns, first, trace);
  }
  if (trace.steps.at.empty()) {
    lines.refuse("no line follows");
  }
  trace.steps.period = file.repeat.value_or(kNever);
  if (trace.steps.period <= trace.steps.at.back()) {
    lines.refuse(fmt::format("it is {} after the first line, and the trace is to repeat after {}",
                             duration_text(to_seconds(trace.steps.at.back())),
                             duration_text(to_seconds(trace.steps.period))));
  }
  return trace;
}

}  // namespace

LinkTrace read_link_trace(const LinkTraceFile& file) {
  LineFile lines(file.path, kTraceHolds);
  if (!lines.next()) {
    lines.refuse(fmt::format("nothing but comments is in it; {}", kTraceHolds));
  }
  const std::string_view start = trimmed(lines.line());
  const bool mahimahi = !start.empty() && start.front() >= '0' && start.front() <= '9';
  if (mahimahi && file.repeat) {
    throw Error(
        fmt::format("'{}' is a trace of Mahimahi's, which repeats after its last line; "
                    "leave repeat out",
                    file.path));
  }
  if (!mahimahi && file.bin) {
    throw Error(fmt::format("'{}' has rates, not packets; leave bin out", file.path));
  }
  LinkTrace trace = mahimahi ? read_mahimahi(lines, file) : read_csv(lines, file);
  if (std::ranges::all_of(trace.bytes_per_s, [](double rate) { return rate == 0; })) {
    lines.refuse("nothing ever passes: all rates are 0");
  }
  return trace;
}

}  // namespace sotto::study

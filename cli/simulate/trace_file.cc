#include "trace_file.h"

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/json_text.h>
#include <sotto/console/output.h>
#include <sotto/observe/trace_event.h>
#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

constexpr std::size_t kOfMessage = 4;

std::string json_quoted(const std::string& text) { return json_text(Json(text)); }

}  // namespace

TraceFile::TraceFile(SimTime from, std::size_t runs)
    : from_(from), most_(kMostEvents / std::max<std::size_t>(1, runs)) {}

void TraceFile::begin_run(const std::string& name) {
  runs_.push_back({.name = name});
  named_.clear();
  flights_.clear();
  events_ += fmt::format(
      "{}{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
      events_.empty() ? "" : ",\n", runs_.size(), json_quoted(name));
}

bool TraceFile::take(SimTime time, std::size_t events) {
  Run& run = runs_.back();
  if (time < from_) {
    return false;
  }
  if (run.events + events > most_ || run.left_out > 0) {
    run.left_out += events;
    run.complete_until = std::min(run.complete_until, time);
    return false;
  }
  run.events += events;
  return true;
}

void TraceFile::write(const char* phase, Rank node, SimTime at, const std::string& fields) {
  events_ += ",\n" + trace_event(phase, {runs_.size(), kFirstNode + node, at}, fields);
}

void TraceFile::name_thread(Rank node) {
  const auto index = static_cast<std::size_t>(node);
  if (index < named_.size() && named_[index]) {
    return;
  }
  named_.resize(std::max(named_.size(), index + 1));
  named_[index] = true;
  write("M", node, 0, fmt::format(R"("name":"thread_name","args":{{"name":"node {}"}})", node));
  write("M", node, 0,
        fmt::format(R"("name":"thread_sort_index","args":{{"sort_index":{}}})", node));
}

void TraceFile::add(const study::Stretch& stretch) {
  if (!take(stretch.from, 1)) {
    return;
  }
  name_thread(stretch.node);
  append_phase_event({runs_.size(), kFirstNode + stretch.node, stretch.from},
                     stretch.until - stretch.from, study::phase_name(stretch.phase),
                     stretch.round + 1, events_);
}

void TraceFile::add(const TraceEntry& entry) {
  if (entry.kind == TraceEntry::Kind::sent) {
    send(entry);
  } else if (entry.kind == TraceEntry::Kind::delivered) {
    deliver(entry);
  }
}

void TraceFile::send(const TraceEntry& entry) {
  Flights& flights = flights_[{entry.node, entry.peer}];
  if (!take(entry.time, kOfMessage)) {
    flights.push_back(0);
    return;
  }
  flights.push_back(++messages_);
  name_thread(entry.node);
  name_thread(entry.peer);
  write("b", entry.node, entry.time,
        fmt::format(R"("cat":"message",{},"name":"{} to {}","args":{{"bytes":{}}})",
                    overlapping_id(messages_), entry.node, entry.peer, entry.bytes));
  write("s", entry.node, entry.time,
        fmt::format(R"("cat":"arrow","id":{},"name":"message")", messages_));
}

void TraceFile::deliver(const TraceEntry& entry) {
  Flights& flights = flights_[{entry.peer, entry.node}];
  if (flights.empty()) {
    return;
  }
  const std::uint64_t id = flights.front();
  flights.pop_front();
  if (id == 0) {
    return;
  }
  write("e", entry.peer, entry.time,
        fmt::format(R"("cat":"message",{},"name":"{} to {}")", overlapping_id(id), entry.peer,
                    entry.node));
  write("f", entry.node, entry.time, fmt::format(R"("cat":"arrow","id":{},"name":"message")", id));
}

void TraceFile::end_run(SimTime end, const std::vector<study::ScenarioMark>& marks,
                        const std::vector<study::SimulatedFault>& faults) {
  for (const study::SimulatedFault& fault : faults) {
    const SimTime at = from_seconds(fault.virtual_s);
    if (at >= from_) {
      name_thread(fault.node);
      write("i", fault.node, at,
            fmt::format(R"("s":"t","cat":"fault","name":{})", json_quoted(fault.fault)));
    }
  }
  for (const study::ScenarioMark& mark : marks) {
    if (mark.at >= from_ && mark.at <= end) {
      events_ += ",\n" + trace_event("i", {runs_.size(), 1, mark.at},
                                     fmt::format(R"("s":"p","cat":"scenario","name":{})",
                                                 json_quoted(mark.text)));
    }
  }
}

std::uint64_t TraceFile::left_out() const {
  std::uint64_t total = 0;
  for (const Run& run : runs_) {
    total += run.left_out;
  }
  return total;
}

std::string TraceFile::text() const {
  Json left = Json::array();
  for (const Run& run : runs_) {
    left.push_back({{"run", run.name},
                    {"events", run.events},
                    {"left_out", run.left_out},
                    {"complete_until_s",
                     run.left_out > 0 ? Json(study::exact_seconds(run.complete_until)) : Json()}});
  }
  return fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"sotto\":\"{}\",\"from_s\":{},\"runs\":{}}},\n"
      "\"traceEvents\":[\n{}\n]}}\n",
      SOTTO_VERSION, study::exact_seconds(from_), json_text(left), events_);
}

}  // namespace sotto::cli

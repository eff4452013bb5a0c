// Nodes as traces of real clients have them: how quick they are, what their connections carry, and
// when they are there (docs/traces.md).
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/study/scenario/internal/clients.h>
#include <sotto/study/scenario/internal/line_file.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

constexpr std::string_view kCapacityHeader = "client,computation ms,communication kbit/s";
constexpr std::string_view kAvailabilityHeader = "client,active s,inactive s,finish s";
constexpr SimTime kMinute = 60'000'000'000;
constexpr SimTime kDay = 24 * 60 * kMinute;
constexpr double kMostMs = 1e9;
constexpr double kMostSeconds = 100.0 * 366 * 24 * 3600;

/// The lines behind a first line that has to be `header`, each with the header's number of fields.
class ClientFile {
 public:
  ClientFile(const std::string& path, std::string_view header)
      : lines_(path, fmt::format("its first line is {}", header)),
        count_(static_cast<std::size_t>(std::ranges::count(header, ',')) + 1) {
    if (!lines_.next() || lines_.line() != header) {
      lines_.refuse(fmt::format("the first line is {}", header));
    }
  }

  bool next() {
    if (!lines_.next()) {
      return false;
    }
    fields_ = lines_.fields();
    if (fields_.size() != count_) {
      lines_.refuse(fmt::format("it has {} fields, and the first line {}", fields_.size(), count_));
    }
    if (fields_[0].empty()) {
      lines_.refuse("it names no client");
    }
    return true;
  }
  std::string client() const { return std::string(fields_[0]); }
  double number(std::size_t field, std::string_view what, double most) const {
    const double found = lines_.number(fields_[field], what);
    if (found > most) {
      lines_.refuse(fmt::format("a {} of {:g} is too much", what, found));
    }
    return found;
  }
  bool blank(std::size_t field) const { return fields_[field].empty(); }
  const LineFile& lines() const { return lines_; }

 private:
  LineFile lines_;
  std::size_t count_;
  std::vector<std::string_view> fields_;
};

struct NamedClients {
  std::vector<std::string> names;
  std::vector<Client> clients;
};

NamedClients read_capacities(const std::string& path, double samples) {
  ClientFile file(path, kCapacityHeader);
  NamedClients found;
  std::map<std::string, std::string> places;
  while (file.next()) {
    const auto [first, fresh] = places.emplace(file.client(), file.lines().place());
    if (!fresh) {
      file.lines().refuse(
          fmt::format("client {} stands at {}, too", printable(file.client()), first->second));
    }
    const double ms = file.number(1, "computation", kMostMs);
    const double kbits = file.number(2, "communication", 1e12);
    if (kbits == 0) {
      file.lines().refuse("a communication of 0 carries nothing");
    }
    found.names.push_back(file.client());
    found.clients.push_back({.gradient_s = samples * ms * 1e-3, .bytes_per_s = kbits * 125});
  }
  if (found.clients.empty()) {
    file.lines().refuse("no line follows");
  }
  return found;
}

/// The intervals of one client, as far as they are read.
struct Presence {
  std::vector<std::pair<SimTime, SimTime>> intervals;
  std::optional<SimTime> finish;
};

SimTime seconds_in(const ClientFile& file, std::size_t field, std::string_view what) {
  return std::llround(file.number(field, what, kMostSeconds) * 1e9);
}

void read_interval(const ClientFile& file, bool fresh, Presence& presence) {
  const SimTime from = seconds_in(file, 1, "time");
  const SimTime until = seconds_in(file, 2, "time");
  std::optional<SimTime> finish;
  if (!file.blank(3)) {
    finish = seconds_in(file, 3, "time");
  }
  if (until <= from) {
    file.lines().refuse("the client is inactive no later than it is active");
  }
  if (finish && *finish < until) {
    file.lines().refuse("its times end later than they repeat");
  }
  if (!fresh && presence.finish != finish) {
    file.lines().refuse("the line before of this client has another finish");
  }
  presence.finish = finish;
  auto& intervals = presence.intervals;
  if (!intervals.empty() && from < intervals.back().second) {
    file.lines().refuse("it begins before the client's line before it ends");
  }
  if (!intervals.empty() && from == intervals.back().second) {
    intervals.back().second = until;
  } else {
    intervals.emplace_back(from, until);
  }
}

/// The clients' presences, and their names in the order in which the file has them.
std::pair<std::vector<std::string>, std::map<std::string, Presence>> read_presences(
    const std::string& path) {
  ClientFile file(path, kAvailabilityHeader);
  std::vector<std::string> order;
  std::map<std::string, Presence> clients;
  while (file.next()) {
    const auto [client, fresh] = clients.emplace(file.client(), Presence{});
    if (fresh) {
      order.push_back(file.client());
    }
    read_interval(file, fresh, client->second);
  }
  return {std::move(order), std::move(clients)};
}

/// [nodes] capacity. Names the clients that the nodes are; none where they are drawn anew.
std::vector<std::string> read_capacity(TomlReader& nodes, Scenario& scenario, std::uint64_t seed) {
  if (!nodes.has("capacity")) {
    return {};
  }
  if (nodes.has("gradient")) {
    nodes.refuse("gradient", "capacity says how long gradients take; give one of the two");
  }
  TomlReader in = *nodes.table("capacity");
  in.require("file", fmt::format("a file whose first line is {}", kCapacityHeader));
  in.require("samples", "how many examples a gradient goes through");
  const std::string path = in.beside(*in.text("file"));
  const double samples = static_cast<double>(*in.count("samples", 1, 1'000'000'000));
  const std::string draw = in.text("draw").value_or("no");
  if (draw != "no" && draw != "once" && draw != "each-exchange") {
    in.refuse("draw", "it is \"once\" or \"each-exchange\"; left out, node k is line k");
  }
  NamedClients found;
  in.at("file", [&] { found = read_capacities(path, samples); });
  const auto count = static_cast<std::size_t>(scenario.nodes);
  if (found.clients.size() < count) {
    in.refuse("file", fmt::format("it has {} for {}", counted(found.clients.size(), "client"),
                                  counted(count, "node")));
  }
  in.finish();
  std::vector<std::uint32_t> drawn(count);
  std::iota(drawn.begin(), drawn.end(), 0U);
  if (draw != "no") {
    drawn = draw_clients(seed, 0, count, found.clients.size());
  }
  std::vector<std::string> names;
  names.reserve(count);
  scenario.hosts.resize(count);
  for (std::size_t node = 0; node < count; ++node) {
    const Client& client = found.clients[drawn[node]];
    scenario.node_specs[node].compute.seconds = client.gradient_s;
    scenario.hosts[node] = {client.bytes_per_s, client.bytes_per_s};
    names.push_back(found.names[drawn[node]]);
  }
  if (draw != "each-exchange") {
    return names;
  }
  scenario.sampling.clients = std::make_shared<const std::vector<Client>>(std::move(found.clients));
  return {};
}

/// [nodes] availability; `names` are the clients that the nodes are, where that is known.
void read_availability(TomlReader& in, Scenario& scenario, std::vector<std::string> names) {
  const auto path = in.text("availability");
  if (!path) {
    return;
  }
  if (scenario.sampling.clients != nullptr) {
    in.refuse("availability", "of clients that are drawn for each exchange, all are there");
  }
  std::map<std::string, Presence> clients;
  in.at("availability", [&] {
    auto read = read_presences(in.beside(*path));
    if (names.empty()) {
      names = std::move(read.first);
    }
    clients = std::move(read.second);
  });
  const auto count = static_cast<std::size_t>(scenario.nodes);
  if (names.size() < count) {
    in.refuse("availability", fmt::format("it has {} for {}", counted(names.size(), "client"),
                                          counted(count, "node")));
  }
  scenario.availability.resize(count);
  for (std::size_t node = 0; node < count; ++node) {
    const auto found = clients.find(names[node]);
    if (found == clients.end()) {
      in.refuse("availability", fmt::format("it does not have client {}, which node {} is",
                                            printable(names[node]), node));
    }
    const Presence& presence = found->second;
    scenario.availability[node].times = std::make_shared<const Availability>(
        availability_of(presence.intervals, presence.finish.value_or(kNever)));
  }
}

/// "8:00" or "08:00"; 24:00 is the end of the day.
SimTime parse_time_of_day(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto hours = parse_number<std::uint64_t>(text.substr(0, colon), 0, 24);
  const auto minutes = colon == std::string_view::npos
                           ? std::nullopt
                           : parse_number<std::uint64_t>(text.substr(colon + 1), 0, 59);
  const SimTime time =
      hours && minutes ? static_cast<SimTime>(60 * *hours + *minutes) * kMinute : kNever;
  if (time > kDay) {
    throw Error(fmt::format("'{}' is no time of day; write hours and minutes, e.g. 08:00",
                            printable(excerpt(text))));
  }
  return time;
}

std::pair<SimTime, SimTime> parse_hours(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) {
    throw Error(
        fmt::format("'{}' is no span of a day, e.g. 08:00-18:00", printable(excerpt(text))));
  }
  const std::pair<SimTime, SimTime> hours = {
      parse_time_of_day(trimmed(std::string_view(text).substr(0, dash))),
      parse_time_of_day(trimmed(std::string_view(text).substr(dash + 1)))};
  if (hours.first % kDay == hours.second % kDay) {
    throw Error(
        fmt::format("'{}' begins when it ends; leave hours out for nodes that are always "
                    "there",
                    printable(excerpt(text))));
  }
  return hours;
}

/// "+1", "-03:30": the time by which a zone is ahead of UTC.
SimTime parse_zone(const std::string& text) {
  const std::string_view rest =
      std::string_view(text).substr(std::min<std::size_t>(1, text.size()));
  const bool behind = text.starts_with('-');
  const std::string whole(rest.find(':') == std::string_view::npos ? fmt::format("{}:00", rest)
                                                                   : std::string(rest));
  if (!behind && !text.starts_with('+')) {
    throw Error(
        fmt::format("'{}' is no time zone; write how far it is ahead of UTC, e.g. +1 or "
                    "-03:30",
                    printable(excerpt(text))));
  }
  const SimTime ahead = parse_time_of_day(whole);
  return behind ? -ahead : ahead;
}

/// The hours of a day, in UTC.
Availability day_of(std::pair<SimTime, SimTime> hours, SimTime zone) {
  const SimTime from = (hours.first - zone + 2 * kDay) % kDay;
  const SimTime until = (hours.second - zone + 2 * kDay) % kDay;
  if (from < until) {
    return availability_of({{from, until}}, kDay);
  }
  return until == 0 ? availability_of({{from, kDay}}, kDay)
                    : availability_of({{0, until}, {from, kDay}}, kDay);
}

void read_hours(TomlReader& in, Scenario& scenario, const Names& names) {
  const SimTime clock = in.parsed("clock", parse_time_of_day).value_or(0);
  SaidOfNodes said;
  for (TomlReader& hours : in.tables("hours")) {
    hours.require("up", "when these nodes are there, in their own time, e.g. \"08:00-18:00\"");
    const auto span = *hours.parsed("up", parse_hours);
    const SimTime zone = hours.parsed("zone", parse_zone).value_or(0);
    const auto ranks = read_ranks(hours, "nodes", names);
    said.note(ranks, hours.place("nodes"), "has two spans of hours");
    const auto day = std::make_shared<const Availability>(day_of(span, zone));
    scenario.availability.resize(static_cast<std::size_t>(scenario.nodes));
    for (const Rank rank : ranks) {
      auto& own = scenario.availability[static_cast<std::size_t>(rank)];
      if (own.times != nullptr) {
        hours.refuse("nodes", fmt::format("availability says when node {} is there", rank));
      }
      own = {.times = day, .start = clock};
    }
    hours.finish();
  }
}

}  // namespace

void read_clients(TomlReader& nodes, Scenario& scenario, const Names& names, std::uint64_t seed) {
  read_availability(nodes, scenario, read_capacity(nodes, scenario, seed));
  if (nodes.has("clock") && !nodes.has("hours")) {
    nodes.refuse("clock",
                 "it is the time of day at which the run begins, for hours, which are "
                 "not there");
  }
  read_hours(nodes, scenario, names);
}

}  // namespace sotto::study

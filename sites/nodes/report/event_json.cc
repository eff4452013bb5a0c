#include <sotto/sites/nodes/report/event_json.h>

#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sotto {

std::string utc_text(double time) {
  constexpr double kMillisecond = 1e-3;
  const double whole = std::floor(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(whole)),
                     static_cast<int>((time - whole) / kMillisecond));
}

std::string_view level_name(SiteEvent::Level level) {
  switch (level) {
    case SiteEvent::Level::info:
      return "info";
    case SiteEvent::Level::warning:
      return "warning";
    case SiteEvent::Level::error:
      return "error";
  }
  return "";
}

nlohmann::ordered_json event_json(const SiteEvent& event, double time) {
  nlohmann::ordered_json json = {{"time", utc_text(time)},
                                 {"level", std::string(level_name(event.level))},
                                 {"event", std::string(name_of(event.kind))}};
  if (event.round) {
    json["round"] = *event.round;
  }
  if (!event.peer.empty()) {
    json["peer"] = event.peer;
  }
  for (const SiteFigure& figure : event.figures) {
    std::visit([&](auto value) { json[std::string(figure.name)] = value; }, figure.value);
  }
  json["text"] = event.text;
  return json;
}

}  // namespace sotto

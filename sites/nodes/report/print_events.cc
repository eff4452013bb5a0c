#include <sotto/sites/nodes/report/print_events.h>

#include <string>

#include <fmt/format.h>

#include <sotto/base/unix_time.h>
#include <sotto/sites/nodes/report/event_json.h>

namespace sotto {

SiteListener print_events(std::FILE* out, SiteEvent::Level least) {
  return [out, least](const SiteEvent& event) {
    if (event.level < least) {
      return;
    }
    const std::string peer = event.peer.empty() ? std::string() : " " + event.peer;
    fmt::print(out, "{} {} {}{}: {}\n", utc_text(unix_time()), level_name(event.level),
               name_of(event.kind), peer, event.text);
    std::fflush(out);
  };
}

}  // namespace sotto

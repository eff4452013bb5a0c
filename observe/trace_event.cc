#include <sotto/observe/trace_event.h>

#include <array>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

/// Appends to an event, of which there is one for each phase of each round: formats that are walked
/// through take three times as long.
class EventText {
 public:
  explicit EventText(std::string& out) : out_(out) {}

  EventText& begin(std::string_view phase, const TracePlace& place, std::int64_t at) {
    return text(",\n{\"ph\":\"")
        .text(phase)
        .text("\",\"pid\":")
        .number(place.process)
        .text(",\"tid\":")
        .number(place.thread)
        .text(",\"ts\":")
        .time(at);
  }
  EventText& text(std::string_view text) {
    out_.append(text);
    return *this;
  }
  template <typename Integer>
  EventText& number(Integer value) {
    const fmt::format_int digits(value);
    return text({digits.data(), digits.size()});
  }
  /// Nanoseconds, as microseconds.
  EventText& time(std::int64_t nanoseconds) {
    const auto part = static_cast<int>(nanoseconds % 1000);
    const std::array<char, 4> decimals = {'.', static_cast<char>('0' + part / 100),
                                          static_cast<char>('0' + part / 10 % 10),
                                          static_cast<char>('0' + part % 10)};
    return number(nanoseconds / 1000).text({decimals.data(), decimals.size()});
  }

 private:
  std::string& out_;
};

}  // namespace

std::string trace_event(std::string_view phase, const TracePlace& place, std::string_view fields) {
  return fmt::format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},{}}}", phase,
                     place.process, place.thread, place.at / 1000, place.at % 1000, fields);
}

std::string overlapping_id(std::uint64_t id) {
  return fmt::format(R"("id2":{{"local":"{}"}})", id);
}

void append_phase_event(const TracePlace& place, std::int64_t length, std::string_view name,
                        std::uint64_t round, std::string& out) {
  EventText(out)
      .begin("X", place, place.at)
      .text(",\"dur\":")
      .time(length)
      .text(",\"cat\":\"phase\",\"name\":\"")
      .text(name)
      .text("\",\"args\":{\"round\":")
      .number(round)
      .text("}}");
}

void append_overlapping_event(const TracePlace& place, std::int64_t until, std::string_view name,
                              std::uint64_t id, std::string_view arguments, std::string& out) {
  const auto named = [&](EventText&& event) -> EventText& {
    return event.text(",\"cat\":\"")
        .text(name)
        .text("\",\"id2\":{\"local\":\"")
        .number(id)
        .text("\"},\"name\":\"")
        .text(name);
  };
  named(std::move(EventText(out).begin("b", place, place.at)))
      .text("\",\"args\":{")
      .text(arguments)
      .text("}}");
  named(std::move(EventText(out).begin("e", place, until))).text("\"}");
}

}  // namespace sotto

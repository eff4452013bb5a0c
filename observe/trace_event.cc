#include <sotto/observe/trace_event.h>

#include <array>

#include <fmt/format.h>

namespace sotto {
namespace {

/// Appends to events, of which there is one for each phase of each round: formats that are walked
/// through take three times as long.
class EventText {
 public:
  explicit EventText(std::string& out) : out_(out) {}

  EventText& begin(std::string_view phase, const TracePlace& place, std::int64_t at) {
    return text("{\"ph\":\"")
        .text(phase)
        .text("\",\"pid\":")
        .number(place.process)
        .text(",\"tid\":")
        .number(place.thread)
        .text(",\"ts\":")
        .time(at);
  }
  EventText& id(std::uint64_t id) { return text("\"id2\":{\"local\":\"").number(id).text("\"}"); }
  /// Names one of the overlapping events of this name.
  EventText& one_of(std::string_view name, std::uint64_t number) {
    return text(",\"cat\":\"")
        .text(name)
        .text("\",")
        .id(number)
        .text(",\"name\":\"")
        .text(name)
        .text("\"");
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
  std::string event;
  EventText(event).begin(phase, place, place.at).text(",").text(fields).text("}");
  return event;
}

std::string overlapping_id(std::uint64_t id) {
  std::string field;
  EventText(field).id(id);
  return field;
}

void append_phase_event(const TracePlace& place, std::int64_t length, std::string_view name,
                        std::uint64_t round, std::string& out) {
  EventText(out)
      .text(",\n")
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
  EventText(out)
      .text(",\n")
      .begin("b", place, place.at)
      .one_of(name, id)
      .text(",\"args\":{")
      .text(arguments)
      .text("}},\n")
      .begin("e", place, until)
      .one_of(name, id)
      .text("}");
}

}  // namespace sotto

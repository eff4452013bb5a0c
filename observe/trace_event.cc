#include <sotto/observe/trace_event.h>

#include <fmt/compile.h>
#include <fmt/format.h>

namespace sotto {

std::string trace_event(std::string_view phase, const TracePlace& place, std::string_view fields) {
  return fmt::format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},{}}}", phase,
                     place.process, place.thread, place.at / 1000, place.at % 1000, fields);
}

std::string overlapping_id(std::uint64_t id) {
  return fmt::format(R"("id2":{{"local":"{}"}})", id);
}

// There is one for each phase of each round: the format is read when this is compiled.
void append_phase_event(const TracePlace& place, std::int64_t length, std::string_view name,
                        std::uint64_t round, std::string& out) {
  fmt::memory_buffer text;
  fmt::format_to(fmt::appender(text),
                 FMT_COMPILE(",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},"
                             "\"dur\":{}.{:03},\"cat\":\"phase\",\"name\":\"{}\","
                             "\"args\":{{\"round\":{}}}}}"),
                 place.process, place.thread, place.at / 1000, place.at % 1000, length / 1000,
                 length % 1000, name, round);
  out.append(text.data(), text.size());
}

void append_overlapping_event(const TracePlace& place, std::int64_t until, std::string_view name,
                              std::uint64_t id, std::string_view arguments, std::string& out) {
  fmt::memory_buffer text;
  fmt::format_to(
      fmt::appender(text),
      FMT_COMPILE(",\n{{\"ph\":\"b\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"cat\":\"{}\","
                  "\"id2\":{{\"local\":\"{}\"}},\"name\":\"{}\",\"args\":{{{}}}}}"),
      place.process, place.thread, place.at / 1000, place.at % 1000, name, id, name, arguments);
  fmt::format_to(
      fmt::appender(text),
      FMT_COMPILE(",\n{{\"ph\":\"e\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"cat\":\"{}\","
                  "\"id2\":{{\"local\":\"{}\"}},\"name\":\"{}\"}}"),
      place.process, place.thread, until / 1000, until % 1000, name, id, name);
  out.append(text.data(), text.size());
}

}  // namespace sotto

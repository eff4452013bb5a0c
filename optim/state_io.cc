#include <sotto/optim/state_io.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace sotto {

void write_floats(std::span<const float> values, ByteBuffer& out) {
  out.write(std::uint64_t{values.size()});
  out.write_span(values);
}

void write_floats(const Vector& values, ByteBuffer& out) {
  std::vector<float> room;
  write_floats(values.empty() ? std::span<const float>() : on_host(values, values.ops(), room),
               out);
}

Status read_floats(ByteReader& in, std::string_view what, Vector& values) {
  if (values.empty() || values.ops().on_host()) {
    return read_floats(in, what, std::span<float>(values));
  }
  std::vector<float> here(values.size());
  Status status = read_floats(in, what, std::span(here));
  if (status.ok()) {
    values.ops().from_host(std::as_bytes(std::span(here)), values);
  }
  return status;
}

Status read_floats(ByteReader& in, std::string_view what, std::span<float> values) {
  const auto count = in.read<std::uint64_t>();
  if (in.failed() || count != values.size()) {
    return {Fault::malformed, fmt::format("checkpoint has {} elements of {} where {} are due",
                                          count, what, values.size())};
  }
  if (!in.read_into(values)) {
    return {Fault::malformed, fmt::format("checkpoint ends within {}", what)};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return {Fault::non_finite,
              fmt::format("checkpoint has {} as element {} of {}", values[i], i, what)};
    }
  }
  return {};
}

Status expect_name(ByteReader& in, std::string_view what, std::string_view name) {
  constexpr std::size_t kMostSpecBytes = 4096;  // a specification has a rule a tensor at most
  const std::string found = in.read_string(kMostSpecBytes);
  if (in.failed() || found != name) {
    return {Fault::malformed,
            fmt::format("checkpoint of {} '{}' where '{}' is used", what, found, name)};
  }
  return {};
}

}  // namespace sotto

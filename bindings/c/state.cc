// The optimizer's state, in a buffer and in a file: both hold a checkpoint (trainers/checkpoint.h).
#include <cstring>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/trainers/checkpoint.h>
#include <sotto/trainers/durable_file.h>

#include "guard.h"
#include "handles.h"

namespace sotto::c {
namespace {

/// The longest file that is read: the largest model with several copies of state.
constexpr std::size_t kMostStateBytes = std::size_t{1} << 37;

/// Drains, and fills `out`.
Status encode_state(sotto_optimizer& held, std::vector<std::byte>& out) {
  if (held.begun) {
    throw Error("save: a round is open, whose gradient was not taken; save between two rounds");
  }
  Optimizer& optimizer = held.optimizer;
  if (Status status = optimizer.drain(); !status.ok()) {
    return status;
  }
  ByteBuffer state;
  optimizer.save(state);
  out = encode_checkpoint({.rank = optimizer.options().rank,
                           .nodes = optimizer.options().nodes,
                           .round = optimizer.round(),
                           .agreement = optimizer.agreement(),
                           .optimizer = std::move(state).take(),
                           .run = {}});
  return {};
}

Status decode_state(sotto_optimizer& held, std::span<const std::byte> bytes) {
  Optimizer& optimizer = held.optimizer;
  if (optimizer.round() > 0 || held.begun || held.finished) {
    throw Error("load: it comes before the first step");
  }
  const auto saved = decode_checkpoint(bytes);
  if (!saved.ok()) {
    return saved.status();
  }
  const std::string difference = first_difference(optimizer.agreement(), saved->agreement);
  if (!difference.empty()) {
    return {Fault::unexpected,
            fmt::format("the state was saved under other settings: {}", difference)};
  }
  if (saved->rank != optimizer.options().rank) {
    return {Fault::unexpected, fmt::format("the state is that of node {}, and this is node {}",
                                           saved->rank, optimizer.options().rank)};
  }
  // The nodes compare their initial models, which the states replace.
  if (Status status = optimizer.connect(); !status.ok()) {
    return status;
  }
  ByteReader in(saved->optimizer);
  held.broken = optimizer.load(in);
  if (held.broken.ok() && !in.finished()) {
    held.broken = Status(Fault::malformed, "the saved state is longer than it should be");
  }
  return held.broken;
}

/// Runs `body`, which returns a sotto_status, in this thread's turn.
template <typename Body>
sotto_status in_turn(sotto_optimizer* held, const Body& body) noexcept {
  return guarded([&] {
    need(held, "optimizer");
    const Turn turn(held->busy, "optimizer");
    return held->broken.ok() ? body() : outcome(held->broken);
  });
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_optimizer_save(sotto_optimizer* optimizer, void* buffer, size_t capacity,
                                  size_t* size) {
  return in_turn(optimizer, [&] {
    need(size, "size");
    std::vector<std::byte> state;
    if (const Status status = encode_state(*optimizer, state); !status.ok()) {
      return outcome(status);
    }
    *size = state.size();
    if (buffer == nullptr) {
      return sotto_status{SOTTO_OK};
    }
    if (capacity < state.size()) {
      return fail(SOTTO_TOO_SMALL, fmt::format("capacity: {} bytes are too few; the state takes {}",
                                               capacity, state.size()));
    }
    std::memcpy(buffer, state.data(), state.size());
    return sotto_status{SOTTO_OK};
  });
}

sotto_status sotto_optimizer_load(sotto_optimizer* optimizer, const void* bytes, size_t size) {
  return in_turn(optimizer, [&] {
    return outcome(
        decode_state(*optimizer, span_at(static_cast<const std::byte*>(bytes), size, "bytes")));
  });
}

sotto_status sotto_optimizer_save_file(sotto_optimizer* optimizer, const char* path) {
  return in_turn(optimizer, [&] {
    need(path, "path");
    std::vector<std::byte> state;
    const Status status = encode_state(*optimizer, state);
    return outcome(status.ok() ? write_durably(path, state) : status);
  });
}

sotto_status sotto_optimizer_load_file(sotto_optimizer* optimizer, const char* path) {
  return in_turn(optimizer, [&] {
    need(path, "path");
    const auto state = read_file(path, kMostStateBytes);
    return outcome(state.ok() ? decode_state(*optimizer, *state).with_context(path)
                              : state.status());
  });
}

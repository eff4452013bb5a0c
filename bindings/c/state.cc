// The optimizer's state, in a buffer and in a file: both hold a checkpoint
// (trainers/files/checkpoint.h).
#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/durable_file.h>
#include <sotto/trainers/files/checkpoint.h>

#include "guard.h"
#include "optimizer_handle.h"

namespace sotto::c {
namespace {

/// Drains, and encodes. Of a round that is open nothing is saved.
Result<std::vector<std::byte>> encode_state(Optimizer& optimizer) {
  if (Status status = optimizer.drain(); !status.ok()) {
    return status;
  }
  ByteBuffer state;
  optimizer.save(state);
  return encode_checkpoint({.rank = optimizer.options().rank,
                            .nodes = optimizer.options().nodes,
                            .round = optimizer.round(),
                            .agreement = optimizer.agreement(),
                            .optimizer = std::move(state).take(),
                            .run = {}});
}

Status decode_state(sotto_optimizer& held, std::span<const std::byte> bytes) {
  Optimizer& optimizer = held.optimizer;
  if (optimizer.round() > 0 || held.finished) {
    throw Error("load", "it comes before the first step");
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
  Status loaded = optimizer.load(in);
  if (loaded.ok() && !in.finished()) {
    loaded = {Fault::malformed, "the saved state is longer than it should be"};
  }
  // What was taken in part is no state to go on from.
  return loaded.ok() ? loaded : optimizer.give_up(loaded);
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_optimizer_save(sotto_optimizer* optimizer, void** bytes, size_t* size) {
  return in_turn(optimizer, [&]() -> Status {
    need(bytes, "bytes");
    need(size, "size");
    const auto state = encode_state(optimizer->optimizer);
    if (!state.ok()) {
      return state.status();
    }
    *bytes = copy_for_caller({reinterpret_cast<const char*>(state->data()), state->size()});
    *size = state->size();
    return {};
  });
}

sotto_status sotto_optimizer_load(sotto_optimizer* optimizer, const void* bytes, size_t size) {
  return in_turn(optimizer, [&] {
    return decode_state(*optimizer, span_at(static_cast<const std::byte*>(bytes), size, "bytes"));
  });
}

sotto_status sotto_optimizer_save_file(sotto_optimizer* optimizer, const char* path) {
  return in_turn(optimizer, [&] {
    need(path, "path");
    const auto state = encode_state(optimizer->optimizer);
    return state.ok() ? write_durably(path, *state) : state.status();
  });
}

sotto_status sotto_optimizer_load_file(sotto_optimizer* optimizer, const char* path) {
  return in_turn(optimizer, [&] {
    need(path, "path");
    const auto state = read_file(path, kMostStateBytes);
    return state.ok() ? decode_state(*optimizer, *state).with_context(path) : state.status();
  });
}

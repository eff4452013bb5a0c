#include "keyed_shared.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

Encoding keyed(const std::string& compressor) {
  return {.data = Carried::activation, .memory = ErrorMemory::keyed, .compressor = compressor};
}

/// Checks options, for initializers.
const KeyedLinkOptions& checked_link(const GroupMember& member, const KeyedLinkOptions& options) {
  constexpr std::size_t kMostBatches = 1 << 12;
  const int members = member.group.size();
  for (const auto& [field, at] : {std::pair("from", options.from), std::pair("to", options.to)}) {
    if (at < 0 || at >= members) {
      refuse(field, fmt::format("{}", at),
             fmt::format("the group has the positions 0 to {}", members - 1));
    }
  }
  if (options.from == options.to) {
    refuse("to", fmt::format("{}", options.to), "a link has two ends; take another member");
  }
  require_between("width", options.width, 1, kMostDimension);
  require_between("rows", options.rows, 1, kMostDimension / options.width);
  require_between("batches", static_cast<std::size_t>(std::max(0, options.batches)), 1,
                  kMostBatches);
  require_between("keys", options.keys, 1, std::numeric_limits<std::uint32_t>::max());
  return options;
}

std::size_t checked_keys(const KeyedLinkOptions& options, bool exact) {
  if (exact) {
    return 0;
  }
  const std::size_t element = KeyedMemory::element_bytes(options.memory);
  const std::size_t most = options.memory_limit / element / options.width;
  if (options.keys > most) {
    refuse("keys", fmt::format("{}", options.keys),
           fmt::format("rows of {} elements under as many keys take {} bytes at each end, and the "
                       "memory limit is {}; take at most {} keys, a higher limit, or plain "
                       "activations of 8 bits",
                       options.width, options.keys * options.width * element, options.memory_limit,
                       most));
  }
  return options.keys;
}

}  // namespace

KeyedLink::Shared::Shared(const GroupMember& at, const KeyedLinkOptions& chosen)
    : member(at),
      options(checked_link(at, chosen)),
      later(options.width, keyed(options.compressor), at.node->ops()),
      first(options.width, keyed(options.first), at.node->ops()),
      back(options.width,
           {.data = Carried::activation_gradient, .compressor = options.gradient_compressor},
           at.node->ops()),
      exact(is_exact(*make_encoder(keyed(options.compressor), options.width))),
      memory(options.width, checked_keys(options, exact), options.memory, is_end()) {
  const auto batches = static_cast<std::size_t>(options.batches);
  keys.resize(batches);
  under_way.resize(batches);
  came.resize(batches);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    keys[batch].reserve(options.rows);
    came[batch].resize(is_end() ? options.rows * options.width : 0);
  }
  sent.resize(sends() && !exact ? options.rows * options.width : 0);
  sorted.reserve(is_end() ? options.rows * batches : 0);
}

Status KeyedLink::Shared::take_keys(std::size_t batch, std::span<const std::uint64_t> given) {
  check(given.size() <= options.rows, "a batch has at most the link's rows");
  sorted.assign(given.begin(), given.end());
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return member.node->fault(Fault::unexpected,
                              fmt::format("the key {} stands twice in batch {}; give each row of a "
                                          "batch a key of its own",
                                          *twice, batch));
  }
  // The new keys of batches under way take their room when these are there, each once.
  const auto is_new = [this](std::uint64_t key) { return !comes_again(key); };
  sorted.clear();
  for (std::size_t other = 0; other < keys.size(); ++other) {
    if (under_way[other] && other != batch) {
      std::ranges::copy_if(keys[other], std::back_inserter(sorted), is_new);
    }
  }
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::size_t room = memory.capacity() - memory.size();
  room -= std::min(room, sorted.size());
  for (const std::uint64_t key : given) {
    if (!is_new(key) || std::ranges::binary_search(sorted, key)) {
      continue;
    }
    if (room == 0) {
      return member.node->fault(
          Fault::unexpected,
          fmt::format("the row under key {} finds no room among {} keys; build the link with as "
                      "many keys as a pass over the data has rows, or forget some at both ends",
                      key, memory.capacity()));
    }
    --room;
  }
  keys[batch].assign(given.begin(), given.end());
  under_way[batch] = true;
  return {};
}

}  // namespace sotto

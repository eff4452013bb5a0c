// The links of many paths in one block of memory: of the ways there and back of a million
// connections.
//
// One thread at a time. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sotto/sim/network/platform.h>

namespace sotto {

class PathStore {
 public:
  /// Links one after another.
  struct Path {
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };

  /// Keeps a path over these links, in their order.
  Path add(std::span<const LinkId> links) {
    const Path path = {static_cast<std::uint32_t>(links_.size()),
                       static_cast<std::uint32_t>(links.size())};
    links_.insert(links_.end(), links.begin(), links.end());
    return path;
  }
  /// The links of a path, until another is added.
  std::span<const LinkId> links(const Path& path) const {
    return std::span(links_).subspan(path.begin, path.count);
  }

 private:
  std::vector<LinkId> links_;
};

}  // namespace sotto

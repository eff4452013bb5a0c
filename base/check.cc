#include <sotto/base/check.h>

#include <cstdio>
#include <cstdlib>

namespace sotto {

void broken_invariant(std::string_view what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: invariant broken: %.*s\n", file, line, static_cast<int>(what.size()),
               what.data());
  std::abort();
}

}  // namespace sotto

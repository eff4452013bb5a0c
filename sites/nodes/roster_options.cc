#include <sotto/sites/nodes/roster_options.h>

#include <sotto/comm/shared_store.h>

namespace sotto {

bool by_store(const RosterOptions& options) {
  return options.seeds.size() == 1 && names_store(options.seeds.front());
}

}  // namespace sotto

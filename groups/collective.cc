#include <sotto/groups/collective.h>

namespace sotto {

std::vector<Edge> GroupMember::others() const {
  std::vector<Edge> edges;
  for (int other = 0; other < group.size(); ++other) {
    if (other != group.position) {
      edges.push_back(edge(other));
    }
  }
  return edges;
}

}  // namespace sotto

#include <sotto/groups/collective.h>

#include <sotto/base/check.h>

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

void OnePhaseCollective::begin_exchange() {
  check(!busy(), "a collective does one thing at a time");
  begun_ = true;
}

Result<bool> OnePhaseCollective::next_exchange(Exchange& out) {
  if (open() || !begun_) {
    return false;
  }
  if (Status status = post(); !status.ok()) {
    return status;
  }
  begun_ = false;
  return mail_.next_exchange(out);
}

}  // namespace sotto

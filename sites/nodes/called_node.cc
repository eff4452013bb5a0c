#include <sotto/sites/nodes/called_node.h>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {

CalledNode::CalledNode(const Parts& parts)
    : parts_(parts),
      service_(fmt::format("a {}", parts.noun), parts.serve_every, [this] { serve(); }) {}

CalledNode::Visit::Visit(CalledNode& node) : node_(node), lock_(node.pause()) {
  if (node_.parts_.computes()) {
    node_.time_.compute_s += seconds_since(node_.left_);
  }
}

const Status& CalledNode::usable() const {
  if (finished_) {
    throw Error(fmt::format("the {} is finished: no step follows", parts_.noun));
  }
  return status_;
}

void CalledNode::note(const Status& status) {
  if (status_.ok()) {
    status_ = status;
    parts_.fail();
  }
}

Status CalledNode::fail(const Status& status) {
  note(status);
  parts_.tell(status);
  return status;
}

void CalledNode::serve() {
  if (finished_ || !status_.ok()) {
    return;
  }
  Status status;
  try {
    status = parts_.serve();
  } catch (const std::exception& exception) {
    status = Status(Fault::unexpected, exception.what());
  } catch (...) {
    status = of_no_standard();
  }
  try {
    if (!status.ok()) {
      (void)fail(status);  // the program's next call returns it
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): a listener's, which is noted
  }
}

}  // namespace sotto

// Finds the addresses behind HOST:PORT without waiting for it: a name server may take its time, or
// never answer.
//
// Thread safety: one thread. Ownership: shares its answer with a thread that it leaves behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace sotto::internal {

class Lookup {
 public:
  /// Looks up `host_port`, as in a list of peers. Addresses made of numbers are there at once.
  explicit Lookup(const std::string& host_port);

  bool done() const;
  /// "tcp://10.0.0.1:9001" and the like; none when there is no such host. Requires done().
  std::vector<std::string> endpoints() const;

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;
};

}  // namespace sotto::internal

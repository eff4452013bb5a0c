#include <sotto/sites/nodes/incarnation.h>

#include <algorithm>

#include <sotto/base/secret_stream.h>

namespace sotto {

sites::Incarnation draw_incarnation() {
  SecretStream random(SecretKey::fresh(), SecretPurpose::sample, 0);
  return std::max<sites::Incarnation>(random.next_u64(), 1);
}

}  // namespace sotto

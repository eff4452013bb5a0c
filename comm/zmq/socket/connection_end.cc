#include "connection_end.h"

#include <sys/stat.h>

namespace sotto::internal {

std::optional<OpenFile> OpenFile::at(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? std::optional(OpenFile(status.st_dev, status.st_ino))
                                           : std::nullopt;
}

}  // namespace sotto::internal

// What refuses a part of a file, with the place of that part. Pure functions.
#pragma once

#include <string>

#include <sotto/base/error.h>

namespace sotto::study {

/// What `error` says, with "PLACE: " in front; its settings stay data.
Error placed(const std::string& place, const Error& error);

}  // namespace sotto::study

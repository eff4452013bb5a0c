#include <sotto/trainers/optimizer_options.h>

#include <sotto/base/names.h>

namespace sotto {
namespace {

/// The rules that people name; none is the default.
constexpr auto kNamedJoins = {Join::stop, Join::zeros};

}  // namespace

std::string_view join_name(Join join) {
  switch (join) {
    case Join::none:
      return "none";
    case Join::stop:
      return "stop";
    case Join::zeros:
      return "zeros";
  }
  return "unknown";
}

std::vector<std::string> join_names() {
  std::vector<std::string> names;
  for (const Join join : kNamedJoins) {
    names.emplace_back(join_name(join));
  }
  return names;
}

Join parse_join(std::string_view name) {
  for (const Join join : kNamedJoins) {
    if (join_name(join) == name) {
      return join;
    }
  }
  refuse_unknown("join", name, join_names());
}

}  // namespace sotto

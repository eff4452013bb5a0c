#include <sotto/base/word_list.h>

namespace sotto {

std::string word_list(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      const bool is_last = i + 1 == names.size();
      text.append(is_last ? " " : ", ");
      if (is_last) {
        text.append(last).append(" ");
      }
    }
    text += names[i];
  }
  return text;
}

}  // namespace sotto

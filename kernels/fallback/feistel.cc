// What many words are enciphered by when sotto is built without Highway.
#include "../feistel.h"

namespace sotto {

void encipher(const FeistelNetwork& network, std::span<std::uint32_t> words) {
  for (std::uint32_t& word : words) {
    word = encipher(network, word);
  }
}

}  // namespace sotto

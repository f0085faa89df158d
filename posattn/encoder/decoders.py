"""The decoders that come with the package, registered, beside the interface."""

from posattn.encoder.decoder import AnyDecoderConfig as AnyDecoderConfig
from posattn.encoder.decoder import Decoder as Decoder
from posattn.encoder.decoder import DecoderConfig as DecoderConfig
from posattn.encoder.decoder import PlainDecoder as PlainDecoder
from posattn.encoder.decoder import PlainDecoderConfig as PlainDecoderConfig
from posattn.encoder.decoder import decoders as decoders
from posattn.encoder.mask_decoder import EnhancedMaskDecoder as EnhancedMaskDecoder
from posattn.encoder.mask_decoder import MaskDecoderConfig as MaskDecoderConfig
